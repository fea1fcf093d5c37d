//! Running fio: started, watched, interrupted when the run is stopped.

use super::at;
use crate::suite::Context;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weir_load::control::Control;
use weir_load::engine::{Phase, Window};
use weir_load::error::BenchError;
use weir_load::workload::Workload;

/// Time between two looks for a stop.
const LOOK: Duration = Duration::from_millis(100);
/// Longest time that fio may take to end after it was interrupted.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest answer of fio that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
/// Longest line of progress.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// The result of a run of fio.
pub(super) struct Ran {
    /// The JSON of fio.
    pub(super) json: String,
    /// Start of fio, in seconds since 1970-01-01 UTC.
    pub(super) started_unix_s: f64,
    /// The run was interrupted.
    pub(super) stopped: bool,
    /// The complaint of fio, if it ended badly.
    pub(super) complaint: Option<String>,
}

/// Runs `program` on the job file `text`, with `scratch` as its working directory.
pub(super) fn run(
    program: &Path,
    text: &str,
    scratch: &Path,
    loads: &[Workload],
    context: &mut Context<'_>,
) -> Result<Ran, BenchError> {
    let path = |name: &str| scratch.join(name);
    std::fs::write(path("jobs.fio"), text).map_err(|source| at(&path("jobs.fio"), source))?;
    let errors = File::create(path("errors")).map_err(|source| at(&path("errors"), source))?;
    let started_unix_s =
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let began = Instant::now();
    let mut child = Command::new(program)
        .current_dir(scratch)
        .args(["--output-format=json+", "--output=answer", "--eta=always", "--eta-newline=1"])
        .arg("jobs.fio")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .map_err(|source| BenchError::Local { what: "starting fio", source })?;
    context.control.begin(began);
    let lines = child.stdout.take().map(progress).transpose()?;
    let watch = Watch { began, loads, control: context.control };
    let ended = watch.until_end(&mut child, lines.as_ref(), context.observe);
    let (status, stopped) = match ended {
        Ok(ended) => ended,
        Err(source) => {
            // Whatever failed, fio must not outlive us.
            drop(child.kill());
            drop(child.wait());
            return Err(BenchError::Local { what: "waiting for fio", source });
        }
    };
    let json = read_text(&path("answer")).unwrap_or_default();
    let complaint =
        (!status.success() && !stopped).then(|| complaint(&path("errors"), &json, status));
    match (json.contains("\"jobs\""), &complaint) {
        (true, _) => Ok(Ran { json, started_unix_s, stopped, complaint }),
        (false, Some(complaint)) => Err(BenchError::Workload(format!("fio failed: {complaint}"))),
        (false, None) => Err(BenchError::Workload(
            "fio was interrupted before it had anything to tell".to_owned(),
        )),
    }
}

/// The lines that fio prints, from a thread that reads them.
fn progress(stdout: ChildStdout) -> Result<Receiver<String>, BenchError> {
    let (sender, lines) = channel();
    let read = move || {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut stdout).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    };
    std::thread::Builder::new()
        .name("fio-progress".to_owned())
        .spawn(read)
        .map_err(|source| BenchError::Local { what: "starting a thread", source })?;
    Ok(lines)
}

struct Watch<'a> {
    began: Instant,
    loads: &'a [Workload],
    control: &'a Control,
}

impl Watch<'_> {
    fn until_end(
        &self,
        child: &mut Child,
        lines: Option<&Receiver<String>>,
        observe: &mut dyn FnMut(&Window),
    ) -> std::io::Result<(ExitStatus, bool)> {
        let mut interrupted: Option<Instant> = None;
        let mut shown = 0.0;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok((status, interrupted.is_some()));
            }
            if self.control.stopped() && interrupted.is_none() {
                interrupted = Some(Instant::now());
                interrupt(child)?;
            }
            if interrupted.is_some_and(|since| since.elapsed() > PATIENCE) {
                child.kill()?;
            }
            let line = match lines.map(|lines| lines.recv_timeout(LOOK)) {
                Some(Ok(line)) => line,
                Some(Err(RecvTimeoutError::Timeout)) => continue,
                Some(Err(RecvTimeoutError::Disconnected)) | None => {
                    std::thread::sleep(LOOK);
                    continue;
                }
            };
            if let Some(rates) = rates(&line) {
                let at_s = self.began.elapsed().as_secs_f64();
                observe(&self.window(at_s, at_s - shown, rates));
                shown = at_s;
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates of a second are positive and far below 2^63"
    )]
    fn window(&self, at_s: f64, seconds: f64, (operations, bytes): (f64, f64)) -> Window {
        let first = self.loads.iter().map(|load| load.start_delay_s + load.warmup().as_secs_f64());
        let warm = first.fold(f64::INFINITY, f64::min);
        let end = |load: &Workload| {
            let time = load.measured_time()?.as_secs_f64();
            Some(load.start_delay_s + load.warmup().as_secs_f64() + time)
        };
        let end = self.loads.iter().map(end).try_fold(0.0_f64, |most, end| Some(most.max(end?)));
        Window {
            at_s,
            seconds,
            phase: if at_s < warm { Phase::Warmup } else { Phase::Measure },
            operations: (operations * seconds) as u64,
            bytes: (bytes * seconds) as u64,
            errors: 0,
            p99_ms: 0.0,
            max_ms: 0.0,
            left_s: end.map(|end| (end - at_s).max(0.0)),
        }
    }
}

fn interrupt(child: &Child) -> std::io::Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.map_or(Ok(()), |pid| Ok(kill_process(pid, Signal::INT)?))
}

/// Operations and bytes a second of a line such as
/// `Jobs: 2 (f=2): [m(2)][60.0%][r=103MiB/s,w=1024KiB/s][r=26.3k,w=26.5k IOPS][eta 00m:02s]`.
pub(super) fn rates(line: &str) -> Option<(f64, f64)> {
    let mut found = (None, None);
    for part in line.split(['[', ']']) {
        if let Some(part) = part.strip_suffix(" IOPS") {
            found.0 = sum(part, "");
        } else if part.ends_with("B/s") {
            found.1 = sum(part, "B/s");
        }
    }
    Some((found.0?, found.1?))
}

fn sum(part: &str, suffix: &str) -> Option<f64> {
    part.split(',').map(|piece| figure(piece.split_once('=')?.1.strip_suffix(suffix)?)).sum()
}

/// `103Mi`, `26.5k`, `12`.
fn figure(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor = match unit {
        "" => 1.0,
        "k" => 1e3,
        "M" | "m" => 1e6,
        "G" | "g" => 1e9,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|digits| digits * factor)
}

fn read_text(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The message of fio about its failure: its standard error, or the text before the JSON.
fn complaint(errors: &Path, answer: &str, status: ExitStatus) -> String {
    let said = read_text(errors).unwrap_or_default();
    let before = answer.split('{').next().unwrap_or("");
    let lines = said.lines().chain(before.lines()).map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.take(5).collect();
    if lines.is_empty() { format!("it ended with {status}") } else { lines.join("; ") }
}
