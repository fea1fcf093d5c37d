//! Sizes to provision, as the API answers them.

use super::*;
use weir_api::{SizeChoice, SizingQuery};

fn wanted(mib: u64) -> SizingQuery {
    SizingQuery { throughput_bytes_per_second: Some(mib << 20), ..SizingQuery::default() }
}

fn found<'a>(choices: &'a [SizeChoice], qos: Qos, level: &str) -> &'a SizeChoice {
    let level = (!level.is_empty()).then(|| level.to_owned());
    choices.iter().find(|one| one.qos == qos && one.level == level).unwrap()
}

#[tokio::test]
async fn a_rate_is_sized_in_every_model_and_at_every_level() {
    let running = Running::with_volume(Qos::Auto).await;
    let client = &running.client;
    let level = NewLevel { volume_ceiling_bytes_per_second: Some(1000 << 20), ..own_level(64) };
    client.create_level(&level, Dry::No).await.unwrap();
    let sizing = client.sizing(&wanted(4500)).await.unwrap();
    // Three models at five levels, and four without one.
    assert_eq!(sizing.choices.len(), 3 * 5 + 4);
    assert_eq!((sizing.concurrency, sizing.window), (None, None));
    let premium = found(&sizing.choices, Qos::Auto, "premium");
    assert_eq!(premium.quota_bytes, Some(70 * TIB + 320 * GIB), "70.3125 TiB");
    assert_eq!(premium.limit_bytes_per_second, 4500 << 20);
    let own = found(&sizing.choices, Qos::Auto, "own");
    assert_eq!((own.quota_bytes, own.limit_bytes_per_second), (None, 0));
    assert!(own.unreachable.contains("volume ceiling of the level is 1000 MiB/s"), "{own:?}");
    let custom = found(&sizing.choices, Qos::Custom, "");
    assert_eq!(custom.pool_iops, Some(72_000));
    let one = SizingQuery { level: Some("premium".into()), qos: Some(Qos::Manual), ..wanted(64) };
    let one = client.sizing(&one).await.unwrap().choices;
    assert_eq!((one.len(), one[0].pool_bytes), (1, Some(TIB)));
    running.stop().await;
}

#[tokio::test]
async fn a_quota_has_the_rate_of_each_level() {
    let running = Running::with_volume(Qos::Auto).await;
    let query = SizingQuery { quota_bytes: Some(100 * GIB), ..SizingQuery::default() };
    let choices = running.client.sizing(&query).await.unwrap().choices;
    assert_eq!(found(&choices, Qos::Auto, "standard").limit_bytes_per_second, 1_638_400);
    let v1 = found(&choices, Qos::ProvisionedV1, "");
    assert_eq!((v1.limit_bytes_per_second, v1.base_iops), (110 << 20, Some(3100)));
    running.stop().await;
}

#[tokio::test]
async fn the_clients_of_a_quota_are_those_of_each_choice() {
    let running = Running::with_volume(Qos::Auto).await;
    let query = SizingQuery {
        quota_bytes: Some(100 * GIB),
        request_bytes: Some(8 << 10),
        latency_nanos: Some(10_000_000),
        round_trip_nanos: Some(10_000_000),
        ..SizingQuery::default()
    };
    let sizing = running.client.sizing(&query).await.unwrap();
    assert_eq!((sizing.concurrency, sizing.window), (None, None));
    let needs = |qos, level| {
        let choice = found(&sizing.choices, qos, level);
        let of = choice.concurrency.as_ref().unwrap();
        let window = choice.window.as_ref().unwrap().window_bytes;
        (of.operations_per_second, of.in_flight, window)
    };
    // 1.5625 MiB/s and 12.5 MiB/s; 110 MiB/s are 14,080 operations, of which 10,000 are allowed.
    assert_eq!(needs(Qos::Auto, "standard"), (200, 2, 16_384));
    assert_eq!(needs(Qos::Auto, "ultra"), (1600, 16, 131_072));
    assert_eq!(needs(Qos::ProvisionedV1, ""), (10_000, 100, 1_153_434));
    running.stop().await;
}

#[tokio::test]
async fn operations_alone_are_sized_by_the_throughput_that_they_need() {
    let running = Running::with_volume(Qos::Auto).await;
    let query =
        SizingQuery { iops: Some(16_000), request_bytes: Some(4096), ..SizingQuery::default() };
    let sizing = running.client.sizing(&query).await.unwrap();
    let premium = found(&sizing.choices, Qos::Auto, "premium");
    // 62.5 MiB/s.
    assert_eq!(
        (premium.quota_bytes, premium.limit_bytes_per_second),
        (Some(1000 * GIB), 65_536_000)
    );
    let custom = found(&sizing.choices, Qos::Custom, "");
    assert_eq!(custom.volume_iops, Some(16_000));
    assert_eq!(custom.volume_throughput_bytes_per_second, Some(65_536_000));
    let few = SizingQuery { request_bytes: None, iops: Some(1), ..query };
    let sizing = running.client.sizing(&few).await.unwrap();
    assert_eq!(sizing.request_bytes, 64 << 10);
    assert_eq!(found(&sizing.choices, Qos::Auto, "premium").quota_bytes, Some(GIB));
    let least = SizingQuery { request_bytes: Some(1), ..few };
    let sizing = running.client.sizing(&least).await.unwrap();
    let premium = found(&sizing.choices, Qos::Auto, "premium");
    assert_eq!((premium.quota_bytes, premium.limit_bytes_per_second), (Some(1 << 20), 64));
    running.stop().await;
}

#[tokio::test]
async fn operations_of_no_given_size_are_reached_by_the_models_that_have_them() {
    let running = Running::with_volume(Qos::Auto).await;
    let query = SizingQuery { iops: Some(100_000), ..SizingQuery::default() };
    let sizing = running.client.sizing(&query).await.unwrap();
    let custom = found(&sizing.choices, Qos::Custom, "");
    assert_eq!((custom.unreachable.as_str(), custom.volume_iops), ("", Some(100_000)));
    assert_eq!(custom.volume_throughput_bytes_per_second, Some(64 << 20));
    let premium = found(&sizing.choices, Qos::Auto, "premium");
    assert_eq!(premium.limit_bytes_per_second, 100_000 << 16);
    let sized = SizingQuery { request_bytes: Some(64 << 10), ..query };
    let sizing = running.client.sizing(&sized).await.unwrap();
    let custom = found(&sizing.choices, Qos::Custom, "");
    assert_eq!(custom.unreachable, "the model has at most 5 GiB/s for a volume");
    running.stop().await;
}

#[tokio::test]
async fn sizes_beyond_the_largest_are_not_reached() {
    let running = Running::with_volume(Qos::Auto).await;
    let sizing = |rate| {
        let query =
            SizingQuery { throughput_bytes_per_second: Some(rate), ..SizingQuery::default() };
        let client = &running.client;
        async move { client.sizing(&query).await.unwrap().choices }
    };
    for choice in sizing(u64::MAX).await {
        assert!(!choice.unreachable.is_empty() && choice.quota_bytes.is_none(), "{choice:?}");
    }
    let choices = sizing(17 << 40).await;
    let standard = found(&choices, Qos::Auto, "standard");
    assert!(standard.unreachable.contains("more than 1 EiB"), "{standard:?}");
    assert_eq!(found(&choices, Qos::Auto, "premium").unreachable, "");
    for bytes in [1000, (1 << 60) + 1] {
        let query = SizingQuery { quota_bytes: Some(bytes), ..SizingQuery::default() };
        let refused = refusal(running.client.sizing(&query).await);
        assert_eq!((refused.0, refused.1.code.as_str()), (400, "size_out_of_bounds"));
    }
    running.stop().await;
}

#[tokio::test]
async fn requests_in_flight_and_windows_are_for_the_wanted_rate() {
    let running = Running::with_volume(Qos::Auto).await;
    let query = SizingQuery {
        request_bytes: Some(64 << 10),
        latency_nanos: Some(2_000_000),
        round_trip_nanos: Some(10_000_000),
        clients: Some(2),
        ..wanted(1024)
    };
    let sizing = running.client.sizing(&query).await.unwrap();
    let concurrency = sizing.concurrency.unwrap();
    assert_eq!((concurrency.operations_per_second, concurrency.in_flight), (16_384, 33));
    let depths: Vec<_> = concurrency.spreads.iter().map(|one| one.depth).collect();
    assert_eq!(depths, [17, 5, 3, 2]);
    assert!(concurrency.spreads.iter().all(|one| one.admitted));
    let window = sizing.window.unwrap();
    assert_eq!((window.connections, window.window_bytes), (2, 5_368_710));
    assert_eq!(window.buffer_bytes, 2 * window.window_bytes);
    let deep = SizingQuery { latency_nanos: Some(1_000_000_000), connections: Some(1), ..query };
    let deep = running.client.sizing(&deep).await.unwrap().concurrency.unwrap();
    assert_eq!((deep.spreads.len(), deep.spreads[0].admitted), (1, false));
    running.stop().await;
}

#[tokio::test]
async fn questions_without_an_answer_are_refused() {
    let running = Running::with_volume(Qos::Auto).await;
    let client = &running.client;
    let both = SizingQuery { quota_bytes: Some(GIB), ..wanted(1) };
    let neither = SizingQuery::default();
    let nothing = wanted(0);
    let latency = Some(1_000_000);
    let twice = SizingQuery { latency_nanos: latency, volume: Some("v".into()), ..wanted(1) };
    let nobody = SizingQuery { clients: Some(0), latency_nanos: latency, ..wanted(1) };
    for query in [both, neither, nothing, twice, nobody] {
        let refused = refusal(client.sizing(&query).await);
        assert_eq!((refused.0, refused.1.code.as_str()), (400, "bad_request"), "{query:?}");
    }
    let level = SizingQuery { level: Some("gold".into()), ..wanted(1) };
    assert_eq!(refusal(client.sizing(&level).await).1.code, "no_such_level");
    let volume = |name: &str| SizingQuery { volume: Some(name.into()), ..wanted(1) };
    assert_eq!(refusal(client.sizing(&volume("gone")).await).1.code, "no_such_volume");
    let idle = refusal(client.sizing(&volume("v")).await);
    assert_eq!((idle.0, idle.1.code.as_str()), (409, "no_measurement"));
    running.stop().await;
}
