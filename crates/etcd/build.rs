//! Says in plain words what the build of the client needs, before the build of its library fails.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A file that needs the compiler and the definitions that come with it.
const PROBE: &str = "syntax = \"proto3\";\nimport \"google/protobuf/descriptor.proto\";\n";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PROTOC");
    if env::var_os("CARGO_FEATURE_CLIENT").is_some() && !can_compile() {
        println!(
            "cargo::error=the client of etcd is built with protoc: install the Debian packages \
             protobuf-compiler and libprotobuf-dev (or set PROTOC), or leave the feature out"
        );
    }
}

fn can_compile() -> bool {
    let Some(out) = env::var_os("OUT_DIR") else { return false };
    let probe = Path::new(&out).join("probe.proto");
    if fs::write(&probe, PROBE).is_err() {
        return false;
    }
    let protoc = env::var_os("PROTOC").unwrap_or_else(|| "protoc".into());
    let mut compile = Command::new(protoc);
    compile.arg("-I").arg(&out).args(["-I", "/usr/include", "--descriptor_set_out=/dev/null"]);
    compile.arg(&probe).status().is_ok_and(|status| status.success())
}
