//! Values as Vdbench writes them: sizes, times, lists and series of numbers.

/// Most values of one list.
const VALUES_MAX: usize = 1000;

/// A size such as `512`, `8k`, `1.5g`, `693gb`, in bytes.
pub(super) fn size(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let text = match text.strip_suffix('b') {
        Some(head) if head.ends_with(['k', 'm', 'g', 't']) => head,
        Some(_) => return None,
        None => &text,
    };
    let (number, factor) = match text.char_indices().next_back()? {
        (at, 'k') => (text.get(..at)?, 1 << 10),
        (at, 'm') => (text.get(..at)?, 1 << 20),
        (at, 'g') => (text.get(..at)?, 1 << 30),
        (at, 't') => (text.get(..at)?, 1_u64 << 40),
        _ => (text, 1),
    };
    decimal(number, factor)
}

/// A number with up to three digits behind the point, times a thousand.
pub(super) fn thousandths(text: &str) -> Option<u64> {
    decimal(text, 1000)
}

/// A decimal number times `factor`, rounded down.
fn decimal(text: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 9 || whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { digits(whole)?.checked_mul(factor)? };
    if fraction.is_empty() {
        return Some(whole);
    }
    let parts = u128::from(digits(fraction)?) * u128::from(factor);
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    whole.checked_add(u64::try_from(parts / scale).ok()?)
}

fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A whole number.
pub(super) fn whole(text: &str) -> Option<u64> {
    digits(text).filter(|_| !text.is_empty())
}

/// A time in seconds: `60`, `60s`, `10m`, `2h`.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let text = text.to_ascii_lowercase();
    let (number, factor) = match text.char_indices().next_back()? {
        (at, 's') => (text.get(..at)?, 1.0),
        (at, 'm') => (text.get(..at)?, 60.0),
        (at, 'h') => (text.get(..at)?, 3600.0),
        _ => (text.as_str(), 1.0),
    };
    let thousandths = thousandths(number)?;
    #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53 ms")]
    let seconds = thousandths as f64 / 1000.0 * factor;
    Some(seconds)
}

/// Values one after the other: `(1,2,4)`; in steps: `(1-10,3)`, `(1-4)`; each twice the one
/// before: `(1-64,d)` or `(1,64,d)`; each half of it: `(64,1,d)`.
pub(super) fn series(
    values: &[String],
    read: impl Fn(&str) -> Option<u64>,
) -> Result<Vec<u64>, String> {
    let words: Vec<&str> = values.iter().map(String::as_str).collect();
    let one = |text: &str| read(text).ok_or_else(|| format!("{text:?} is not a number"));
    let range = |text: &str| -> Result<Option<(u64, u64)>, String> {
        match text.split_once('-').filter(|(from, _)| !from.is_empty()) {
            Some((from, to)) => Ok(Some((one(from)?, one(to)?))),
            None => Ok(None),
        }
    };
    let found = match words.as_slice() {
        [from, to, "d" | "D"] => return doubled(one(from)?, one(to)?),
        [first, rest @ ..] => match (range(first)?, rest) {
            (Some((from, to)), ["d" | "D"]) => return doubled(from, to),
            (Some((from, to)), []) => return stepped(from, to, 1),
            (Some((from, to)), [step]) => return stepped(from, to, one(step)?),
            (Some(_), _) => return Err("a range stands alone: write (first-last,step)".to_owned()),
            (None, _) => words.iter().map(|text| one(text)).collect::<Result<Vec<u64>, _>>()?,
        },
        [] => return Err("a value is missing".to_owned()),
    };
    if found.len() > VALUES_MAX { too_many() } else { Ok(found) }
}

fn stepped(from: u64, to: u64, step: u64) -> Result<Vec<u64>, String> {
    if step == 0 || to < from {
        return Err("a range rises from its first to its last by a step over 0".to_owned());
    }
    if (to - from) / step >= VALUES_MAX as u64 {
        return too_many();
    }
    Ok(std::iter::successors(Some(from), |at| at.checked_add(step))
        .take_while(|at| *at <= to)
        .collect())
}

fn doubled(from: u64, to: u64) -> Result<Vec<u64>, String> {
    if from == 0 || to == 0 {
        return Err("doubling and halving need values over 0".to_owned());
    }
    Ok(if from <= to {
        std::iter::successors(Some(from), |at| at.checked_mul(2))
            .take_while(|at| *at <= to)
            .collect()
    } else {
        std::iter::successors(Some(from), |at| Some(at / 2)).take_while(|at| *at >= to).collect()
    })
}

fn too_many() -> Result<Vec<u64>, String> {
    Err(format!("there are more than {VALUES_MAX} values"))
}

/// Does `name` fit `pattern`: the name itself, a wildcard (`sd*`), or a range (`sd1-sd8`)?
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    pattern == name || glob(pattern, name) || in_range(pattern, name)
}

fn glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(middle) = last.replace(part) {
            match rest.split_once(middle) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

fn in_range(pattern: &str, name: &str) -> bool {
    let Some((first, last)) = pattern.split_once('-') else { return false };
    let (Some((head, from)), Some((same, to))) = (numbered(first), numbered(last)) else {
        return false;
    };
    numbered(name).is_some_and(|(own, n)| own == head && head == same && (from..=to).contains(&n))
}

/// A name without the number at its end, and that number.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let head = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((head, whole(name.get(head.len()..)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read() {
        assert_eq!(size("693g"), Some(693 << 30));
        assert_eq!(size("4KB"), Some(4096));
        assert_eq!(size("1.5m"), Some(3 << 19));
        assert_eq!(size("2t"), Some(2 << 40));
        assert_eq!(size("512"), Some(512));
        for wrong in ["", "k", "b", "8b", "-1", "1e3", "1.k.", "99999999999t", "٣"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
        assert_eq!(seconds("600"), Some(600.0));
        assert_eq!(seconds("10m"), Some(600.0));
        assert_eq!(seconds("1.5H"), Some(5400.0));
        assert_eq!(seconds("h"), None);
    }

    fn read(text: &str) -> Result<Vec<u64>, String> {
        let values: Vec<String> = text.split(',').map(str::to_owned).collect();
        series(&values, size)
    }

    #[test]
    fn series_step_double_and_halve() {
        assert_eq!(read("1,5,2").unwrap(), [1, 5, 2]);
        assert_eq!(read("1-10,3").unwrap(), [1, 4, 7, 10]);
        assert_eq!(read("1-4").unwrap(), [1, 2, 3, 4]);
        assert_eq!(read("1-64,d").unwrap(), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(read("4k-16k,d").unwrap(), [4096, 8192, 16384]);
        assert_eq!(read("64,1,d").unwrap(), [64, 32, 16, 8, 4, 2, 1]);
        assert_eq!(read("3-20,d").unwrap(), [3, 6, 12]);
        for wrong in ["", "a", "1-5,0", "5-1,1", "1-9,2,3", "0-8,d", "1-9999999,1", "1,2-3"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_chosen_by_wildcard_and_range() {
        assert!(fits("sd*", "sd12") && fits("*", "x") && fits("a*c", "abc") && fits("sd1", "sd1"));
        assert!(!fits("sd*", "s") && !fits("a*c", "ab") && !fits("sd1", "sd12"));
        assert!(fits("sd1-sd8", "sd8") && fits("a-1", "a-1"));
        assert!(!fits("sd1-sd8", "sd9") && !fits("sd1-wd8", "sd3") && !fits("sd2-sd8", "sd1"));
        assert!(fits("a*b*c", "axbyc") && !fits("a*b*c", "axyc"));
    }
}
