use super::*;
use std::io::Write;
use weir_catalog::{Mix, Plan, Policy};

fn load(text: &str, overrides: &[Override]) -> Result<ServerConfig, ConfigError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    ServerConfig::load(Some(file.path()), overrides)
}

fn refusal(text: &str) -> String {
    load(text, &[]).unwrap_err().to_string()
}

#[test]
fn overrides_go_before_the_file_and_the_file_before_defaults() {
    let text =
        "data = \"/srv/a\"\nworkers = 3\n[nfs]\nlisten = [\"[::1]:2050\", \"0.0.0.0:2049\"]\n";
    let config = load(text, &[("workers", "5".to_owned())]).unwrap();
    assert_eq!(config.data, Path::new("/srv/a"));
    assert_eq!(config.workers, 5);
    assert_eq!(config.nfs.len(), 2);
    assert_eq!(config.api, ServerConfig::default().api);
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_and_its_line() {
    let message = refusal("data = \"/srv\"\n\nworkerz = 1\n");
    assert!(
        message.ends_with(":3: unknown key \"workerz\"; did you mean \"workers\"?"),
        "{message}"
    );
    let message = refusal("data = \"/srv\"\n[nfs]\nlisten_on = []\n");
    assert!(message.contains(":3: unknown key \"nfs.listen_on\"; did you mean \"nfs.listen\"?"));
    let message = refusal("[nsf]\nlisten = []\n");
    assert!(message.contains(":1: unknown key \"nsf\""), "{message}");
    let message = refusal("zzz = 1\n");
    assert!(message.contains("`weir config keys` lists the known keys"), "{message}");
}

#[test]
fn a_wrong_value_is_refused_with_its_line_and_what_is_right() {
    let message = refusal("data = \"/srv\"\nworkers = -1\n");
    assert!(message.contains(":2: workers: -1 is out of range"), "{message}");
    let message = refusal("[nfs]\nlisten = [\"localhost:2049\"]\n");
    assert!(message.contains("is not an ADDRESS:PORT"), "{message}");
    let message = refusal("pool_size_min = \"1G\"\n");
    assert!(message.contains("use 1GiB"), "{message}");
    assert!(refusal("nfs = 3\n").contains("unknown key \"nfs\""));
    assert!(refusal("metadata_cache = \"yes\"\n").contains("true or false"));
    assert!(refusal("rpcbind = \"on\"\n").contains("not one of register, serve, off"));
    assert!(refusal("seccomp = \"yes\"\n").contains("not one of on, log, off"));
    assert!(refusal("workers = 1.5\n").contains("float"));
    assert!(refusal("data = \n").contains(":1: "));
    assert!(refusal("workers = 1\n").contains("give --data DIR"));
}

#[test]
fn a_certificate_comes_with_its_key() {
    let config = load("data = \"/d\"\n", &[]).unwrap();
    assert_eq!((config.api_tls, config.api_tls_cert), (ApiTls::Auto, None));
    let both = "data = \"/d\"\n[api]\ntls = \"on\"\ntls_cert = \"/a\"\ntls_key = \"/b\"\n";
    let config = load(both, &[]).unwrap();
    assert_eq!(config.api_tls_key.as_deref(), Some(Path::new("/b")));
    let half = refusal("data = \"/d\"\n[api]\ntls_cert = \"/a\"\n");
    assert!(half.contains("give both, or neither"), "{half}");
    assert!(refusal("[api]\ntls = \"yes\"\n").contains("not one of auto, on, off"));
}

#[test]
fn a_log_level_that_nobody_knows_is_refused_and_filters_are_not() {
    for wrong in ["loud", "info,loud", "weir_store=loud", "=info", "info,", "weir store=info"] {
        let message = refusal(&format!("data = \"/srv\"\n[log]\nlevel = \"{wrong}\"\n"));
        assert!(message.contains(":3: log.level: "), "{message}");
        assert!(message.contains("(off, error, warn, info, debug, trace)"), "{message}");
        assert!(message.contains("info,weir_store=debug"), "{message}");
    }
    for (right, kept) in [
        ("WARN", "WARN"),
        ("off", "off"),
        ("info, weir_store=debug", "info,weir_store=debug"),
        ("weir_control::http=trace,hyper=off", "weir_control::http=trace,hyper=off"),
    ] {
        let given = [("data", "/srv".to_owned()), ("log.level", right.to_owned())];
        assert_eq!(ServerConfig::load(None, &given).unwrap().log_level, kept);
    }
}

#[test]
fn the_api_can_be_kept_off_tcp() {
    let config = load("data = \"/srv\"\n[api]\nlisten = []\n", &[]).unwrap();
    assert!(config.api.is_empty());
    let config = load("data = \"/srv\"\n", &[("api.listen", "none".to_owned())]).unwrap();
    assert!(config.api.is_empty());
    assert!(refusal("data = \"/srv\"\n[nfs]\nlisten = []\n").contains("at least one"));
}

#[test]
fn smb_is_off_by_default_and_signed() {
    let config = load("data = \"/srv\"\n", &[]).unwrap();
    assert_eq!((config.smb, config.smb_signing), (Vec::new(), SmbSigning::Required));
    let text =
        "data = \"/srv\"\n[smb]\nlisten = [\"0.0.0.0:445\", \"[::]:445\"]\nsigning = \"offered\"\n";
    let config = load(text, &[]).unwrap();
    assert_eq!((config.smb.len(), config.smb_signing), (2, SmbSigning::Offered));
    assert_eq!(load(text, &[("smb.listen", "none".to_owned())]).unwrap().smb, []);
    assert!(refusal("[smb]\nsigning = \"off\"\n").contains("not one of required, offered"));
    assert!(refusal("[smb]\nlisten = [\"nas:445\"]\n").contains("is not an ADDRESS:PORT"));
}

#[test]
fn the_floor_of_custom_pools_is_one_that_they_can_buy() {
    let with = |rate: &str| format!("data = \"/srv\"\ncustom_throughput_min = \"{rate}\"\n");
    assert_eq!(load(&with("5GiB/s"), &[]).unwrap().custom_throughput_min, 5120 << 20);
    assert!(refusal(&with("5121MiB/s")).contains("must not exceed 5120 MiB/s"));
    assert!(refusal(&with("0MiB/s")).contains("greater than zero"));
}

#[test]
fn what_may_be_promised_is_read_and_refused_with_what_is_right() {
    let text = "data = \"/d\"\n[admission]\npolicy = \"warn\"\nmix = 70\nblock_size = \"1MiB\"\n\
                iops_block_size = \"4KiB\"\novercommit_percent = 150\n";
    let admission = load(text, &[]).unwrap().admission;
    let plan = Plan { mix: Mix::Reads(70), block_bytes: 1 << 20, iops_block_bytes: 4096 };
    assert_eq!(admission, Admission { policy: Policy::Warn, plan, overcommit_percent: 150 });
    let wrong = |line: &str| refusal(&format!("data = \"/d\"\n[admission]\n{line}\n"));
    assert!(wrong("policy = \"on\"").contains("not one of refuse, warn, off"));
    assert!(wrong("mix = 101").contains("neither worst nor a percentage"));
    assert!(wrong("mix = \"best\"").contains("neither worst nor a percentage"));
    assert!(wrong("block_size = \"2MiB\"").contains("must not exceed 1 MiB"));
    assert!(wrong("iops_block_size = \"0B\"").contains("greater than zero"));
    assert!(wrong("overcommit_percent = 0").contains("from 1 to 10000"));
}

#[test]
fn what_is_shown_reads_back_as_the_same() {
    let overrides: Vec<Override> = vec![
        ("data", "/srv/with \"quotes\", a\\b and\n\u{1b}[2J\u{7f}\u{85}".to_owned()),
        ("namespace_durability", "process".to_owned()),
        ("metadata_cache", "false".to_owned()),
        ("rpcbind", "register".to_owned()),
        ("seccomp", "log".to_owned()),
        ("parked_total_mib", "64".to_owned()),
        ("nfs.listen", "127.0.0.1:1, [::1]:2".to_owned()),
        ("smb.listen", "127.0.0.1:445".to_owned()),
        ("smb.signing", "offered".to_owned()),
        ("log.format", "json".to_owned()),
        ("log.level", "info,weir_store=debug".to_owned()),
        ("volume_quota_min", "1.5GiB".to_owned()),
        ("metrics.histograms", "home,db".to_owned()),
        ("admission.policy", "off".to_owned()),
        ("admission.mix", "30".to_owned()),
        ("admission.block_size", "12KiB".to_owned()),
    ];
    let config = ServerConfig::load(None, &overrides).unwrap();
    assert_eq!(load(&config.to_toml(), &[]).unwrap(), config);
}

#[test]
fn volumes_with_histograms_are_named_and_few() {
    let with = |list: &str| format!("data = \"/d\"\n[metrics]\nhistograms = {list}\n");
    let names = |list: &str| load(&with(list), &[]).unwrap().metrics_histograms;
    assert_eq!(names("[\"home\", \"db.1\", \"home\"]"), ["db.1", "home"].map(str::to_owned).into());
    assert!(names("[]").is_empty() && names("\"none\"").is_empty());
    let given = [("data", "/d".to_owned()), ("metrics.histograms", "a, b".to_owned())];
    assert_eq!(ServerConfig::load(None, &given).unwrap().metrics_histograms.len(), 2);
    let many =
        |count: usize| format!("{:?}", (0..count).map(|n| format!("v{n}")).collect::<Vec<_>>());
    assert_eq!(names(&many(100)).len(), 100);
    let refused = refusal(&with(&many(101)));
    assert!(refused.contains(":3: metrics.histograms: at most 100 volumes"), "{refused}");
    let pool = refusal(&with("[\"fast/home\"]"));
    assert!(pool.contains("without the pool"), "{pool}");
    assert!(refusal(&with("7")).contains("a list of volume names"));
    assert!(refusal(&with("[\"\"]")).contains("is not a volume name"));
}

#[test]
fn a_missing_or_huge_file_is_refused() {
    let missing = ServerConfig::load(Some(Path::new("/nonexistent/weir.toml")), &[]);
    assert!(matches!(missing, Err(ConfigError::Read { .. })));
    let huge = "#".repeat(usize::try_from(FILE_BYTES_MAX).unwrap() + 1);
    assert!(matches!(load(&huge, &[]), Err(ConfigError::TooLarge { .. })));
}

#[test]
fn the_template_is_the_defaults_and_so_are_its_comments() {
    let template = ServerConfig::template();
    let defaults = ServerConfig { data: "/var/lib/weir".into(), ..ServerConfig::default() };
    assert_eq!(load(&template, &[]).unwrap(), defaults);
    let is_key = |line: &str| line.starts_with('#') && !line.starts_with("# ");
    assert_eq!(template.lines().filter(|line| is_key(line)).count(), KEYS.len() - 1);
    let given = template.lines().map(|line| if is_key(line) { &line[1..] } else { line });
    let given = given.collect::<Vec<_>>().join("\n");
    assert_eq!(load(&given, &[]).unwrap(), defaults);
}
