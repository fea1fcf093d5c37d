use super::world::Misbehaviour;
use super::{SEEDS, campaign, run};

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

#[test]
fn clusters_under_faults_keep_every_invariant() {
    let first = setting("WEIR_CLUSTER_FIRST").unwrap_or(1);
    let seeds = setting("WEIR_CLUSTER_SEEDS").unwrap_or(SEEDS);
    let totals = campaign(first, seeds, Misbehaviour::None);
    let failed: String = totals.failed.iter().map(|(seed, what)| {
        format!("\nseed {seed}: {what}\n  again: WEIR_CLUSTER_FIRST={seed} WEIR_CLUSTER_SEEDS=1 cargo test -p weir-cluster clusters_under_faults")
    }).collect();
    println!("{totals}");
    assert!(failed.is_empty(), "{totals}{failed}");
    if seeds >= SEEDS {
        let course = &totals.course;
        let counted = [course.condemned, course.condemned_by_word, course.taken, course.handed];
        assert!(counted.iter().all(|count| *count > 100), "the faults do too little: {totals}");
        assert!(course.served_by_words > 100, "the faults do too little: {totals}");
        let versions = [course.raised, course.too_old];
        assert!(versions.iter().all(|count| *count > 100), "versions do too little: {totals}");
        assert!(course.undecidable * 50 < totals.seeds, "too much is undecidable: {totals}");
    }
}

#[test]
fn a_seed_has_one_course() {
    for seed in [3, 14, 15] {
        let (first, second) = (run(seed, Misbehaviour::None), run(seed, Misbehaviour::None));
        assert_eq!(format!("{first:?}"), format!("{second:?}"));
    }
}

/// The simulation is able to find faults: in a world that breaks what the rules assume, it does.
#[test]
fn a_world_that_misbehaves_is_found_out() {
    for (misbehaviour, expected) in [
        (Misbehaviour::BlocklistEarly, "without fencing"),
        (Misbehaviour::ShortLeases, "may reply"),
        (Misbehaviour::WildClocks, "may reply"),
        (Misbehaviour::HastyHelper, "may reply"),
        (Misbehaviour::StoppedEarly, "both"),
    ] {
        let totals = campaign(1, 400, misbehaviour);
        let found = totals.failed.iter().filter(|(_, what)| what.contains(expected)).count();
        assert!(found > 0, "{misbehaviour:?} was not found: {totals}, {:?}", totals.failed);
    }
}
