//! The cost of matching the names of one look at a directory, 64 KiB of them, with a pattern of the
//! greatest length, and with a usual one.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use weir_smb_names::Pattern;

fn page(criterion: &mut Criterion) {
    let long: Vec<String> =
        (0..257).map(|number| format!("{}{number:03}", "a".repeat(252))).collect();
    let short: Vec<String> = (0..1024).map(|number| format!("report-{number:04}.txt")).collect();
    for (name, text, names) in [
        ("257 names of 255 letters, `<a` 127 times", "<a".repeat(127), &long),
        ("257 names of 255 letters, `*a` 127 times", "*a".repeat(127), &long),
        ("1,024 names of 15 letters, `*.doc`", "*.doc".to_owned(), &short),
    ] {
        let wire: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let Ok(pattern) = Pattern::parse(&wire) else { continue };
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                names.iter().filter(|name| pattern.matches(black_box(name.as_bytes()))).count()
            });
        });
    }
}

criterion_group!(benches, page);
criterion_main!(benches);
