//! The knee of a latency curve: where more throughput begins to cost more latency than it did
//! before.
//!
//! Throughput and latency are brought to a range of 0 to 1 each, from the curve's least to its
//! greatest. The knee is the point furthest below the chord from the first to the last, that is
//! with the greatest difference of throughput and latency (Kneedle: Satopää, Albrecht, Irwin and
//! Raghavan, "Finding a 'Kneedle' in a Haystack", 2011). Points at which throughput no longer grows
//! lie beyond the curve and are left out. A curve that stays near its chord has no knee.

/// Distance from the chord, of a range of 1, below which a curve is a straight line.
const BEND: f64 = 0.1;

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Operations a second.
    pub iops: f64,
    /// Latency in milliseconds.
    pub ms: f64,
}

/// The position of the knee in `points`, which come in the order of growing load; `None` if fewer
/// than four points have growing throughput, or the curve does not bend.
#[must_use]
pub fn knee(points: &[Point]) -> Option<usize> {
    let curve = rising(points);
    let (first, last) = (*curve.first()?, *curve.last()?);
    let (across, up) = (last.1.iops - first.1.iops, last.1.ms - first.1.ms);
    if curve.len() < 4 || across <= 0.0 || up <= 0.0 {
        return None;
    }
    let below = |point: &Point| (point.iops - first.1.iops) / across - (point.ms - first.1.ms) / up;
    let (index, distance) = curve
        .iter()
        .map(|(index, point)| (*index, below(point)))
        .max_by(|one, other| one.1.total_cmp(&other.1))?;
    (distance >= BEND).then_some(index)
}

/// The points with more throughput than all before them.
fn rising(points: &[Point]) -> Vec<(usize, Point)> {
    let mut curve: Vec<(usize, Point)> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        if curve.last().is_none_or(|(_, last)| point.iops > last.iops) {
            curve.push((index, *point));
        }
    }
    curve
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Vec<Point> {
        points.iter().map(|(iops, ms)| Point { iops: *iops, ms: *ms }).collect()
    }

    #[test]
    fn a_server_of_fixed_capacity_has_its_knee_where_that_is_reached() {
        // Little's law with 1 ms of service and a capacity of 8000: depth 8 just fills it.
        let points: Vec<Point> = (0..8)
            .map(|power| f64::from(1 << power))
            .map(|depth| {
                let iops = (depth * 1000.0).min(8000.0 + depth);
                Point { iops, ms: depth / iops * 1e3 }
            })
            .collect();
        assert_eq!(knee(&points), Some(3));
    }

    #[test]
    fn the_knee_of_a_queue_lies_where_its_own_formula_has_it() {
        // M/M/1 up to 95 % of its capacity c: with rates and times in ranges of 1, the difference
        // is greatest where the slope of the curve is that of the chord: 1/(c-x)² = 1/(c(c-m)).
        let (capacity, most) = (10_000.0_f64, 9500.0_f64);
        let at = capacity - (capacity * (capacity - most)).sqrt();
        let points: Vec<Point> = (0..=95)
            .map(|percent| f64::from(percent) / 100.0 * capacity)
            .map(|iops| Point { iops, ms: 1e3 / (capacity - iops) })
            .collect();
        let found = points[knee(&points).unwrap()].iops;
        assert!((found - at).abs() <= 100.0, "{found} is not {at}");
    }

    #[test]
    fn a_straight_line_and_too_few_points_have_no_knee() {
        let line = curve(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0), (5.0, 5.0)]);
        assert_eq!(knee(&line), None);
        assert_eq!(knee(&curve(&[(1.0, 1.0), (2.0, 1.0), (3.0, 9.0)])), None);
        assert_eq!(knee(&[]), None);
        let flat = curve(&[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0)]);
        assert_eq!(knee(&flat), None, "latency that never rises has none yet");
    }

    #[test]
    fn what_lies_beyond_the_curve_does_not_count() {
        let points = curve(&[
            (100.0, 1.0),
            (200.0, 1.0),
            (400.0, 1.1),
            (420.0, 3.0),
            (410.0, 30.0),
            (400.0, 300.0),
        ]);
        assert_eq!(knee(&points), Some(2));
    }
}
