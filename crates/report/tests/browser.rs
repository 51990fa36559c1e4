//! The page in a real browser: the script runs, answers and zooms, it is readable in the dark, on
//! a phone and on paper.
//!
//! Drives headless Chromium over files in a temporary directory; without one on the path the
//! tests are skipped. What the browser sees is asked for by a script that is put into a copy of
//! the page and writes its answer into the document, which the browser then prints.

// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../examples/sample.rs"]
mod sample;

use sample::Shape;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const NAMES: [&str; 5] =
    ["chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "chrome"];
/// A browser that takes longer is ended.
const BROWSER_MAX: Duration = Duration::from_secs(120);

/// The browser; None, and the reason on stderr, where there is none.
fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|dir| NAMES.map(|name| dir.join(name)))
        .find(|program| program.is_file());
    if found.is_none() {
        eprintln!("SKIP: no Chromium on the path (apt-get install chromium)");
    }
    found
}

/// Asks up to three times: on a busy machine the browser may print before the page is done.
fn ask_again<T>(ask: impl FnMut() -> Option<T>) -> Option<T> {
    std::iter::repeat_with(ask).take(3).flatten().next()
}

/// One browser at a time: each takes all cpus.
static TURN: Mutex<()> = Mutex::new(());

/// Runs the browser on a page and gives what it prints.
fn browse(browser: &Path, home: &Path, page: &Path, arguments: &[&str]) -> String {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = home.join("stdout");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .args(["--no-first-run", "--disable-extensions", "--virtual-time-budget=4000"])
        .arg(format!("--user-data-dir={}", home.join("profile").display()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&output).unwrap())
        .stderr(fs::File::create(home.join("stderr")).unwrap())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > BROWSER_MAX {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the browser did not end: {}", fs::read_to_string(home.join("stderr")).unwrap());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    fs::read_to_string(output).unwrap()
}

/// A page in a directory that goes away.
struct Sample {
    home: tempfile::TempDir,
    page: PathBuf,
}

fn sample(shape: &Shape) -> Sample {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    sample::write(&dir, shape);
    let page = report::build(&dir).unwrap();
    Sample { home, page }
}

impl Sample {
    /// The answer of `script`, whose value is JSON, in the page. Errors are collected from the
    /// start and asserted to be none.
    fn ask(&self, browser: &Path, script: &str, arguments: &[&str]) -> Value {
        let html = fs::read_to_string(&self.page).unwrap();
        let head = "<head><script>window.failures = []; \
                    addEventListener('error', (e) => failures.push(String(e.message)));</script>";
        let answer = format!(
            "<script>addEventListener('load', () => setTimeout(() => {{\
             let answer; try {{ answer = (() => {{ {script} }})(); }} \
             catch (e) {{ failures.push(String(e)); }} \
             const out = document.createElement('pre'); out.id = 'answer'; \
             const text = JSON.stringify([failures, answer]); \
             out.textContent = btoa(unescape(encodeURIComponent(text))); \
             document.body.append(out); }}, 100));</script></body>"
        );
        let html = html.replacen("<head>", head, 1);
        let (before, after) = html.rsplit_once("</body>").unwrap();
        let copy = self.home.path().join("asked.html");
        fs::write(&copy, format!("{before}{answer}{after}")).unwrap();
        let arguments = [&["--dump-dom", "--window-size=1200,900"], arguments].concat();
        let found = ask_again(|| {
            let dom = browse(browser, self.home.path(), &copy, &arguments);
            let found = dom.split_once("<pre id=\"answer\">")?.1;
            Some(found.split('<').next()?.to_owned())
        });
        let stderr = || fs::read_to_string(self.home.path().join("stderr")).unwrap();
        let text = decoded(&found.unwrap_or_else(|| panic!("no answer: {}", stderr())));
        let mut value: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(value[0], serde_json::json!([]), "the script failed");
        value[1].take()
    }
}

/// The bytes of base64.
fn decoded(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.bytes().filter_map(|c| DIGITS.iter().position(|d| *d == c));
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0usize, 0);
    for digit in digits {
        (bits, count) = ((bits << 6 | digit) & 0xffff, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

/// What the questions have in common: a plot by its id, an event at a share of its width, the
/// numbers on its axes.
const TOOLS: &str = "
    const plot = (id) => document.getElementById(id);
    const svg = (id) => plot(id).querySelector('svg.chart');
    const send = (id, type, share) => { const box = svg(id).getBoundingClientRect();
      svg(id).dispatchEvent(new PointerEvent(type, { clientX: box.left + box.width * share,
        clientY: box.top + box.height / 2, pointerType: 'mouse', pointerId: 1, bubbles: true })); };
    const key = (id, name) =>
      svg(id).dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true }));
    const ticks = (id, axis) =>
      [...svg(id).querySelectorAll(`text.tick.${axis}`)].map((text) => text.textContent);
    Element.prototype.setPointerCapture = () => {};
    const id = 'trial-0001-throughput';
";

fn asked(script: &str) -> String {
    format!("{TOOLS}{script}")
}

#[test]
fn the_script_draws_what_the_page_came_with() {
    let Some(browser) = browser() else { return };
    let sample = sample(&Shape::of("cassandra"));
    let html = fs::read_to_string(&sample.page).unwrap();
    let script = asked(
        "return [...document.querySelectorAll('figure.plot')].map((figure) => \
         [figure.id, ticks(figure.id, 'x'), ticks(figure.id, 'y')]);",
    );
    let drawn = sample.ask(&browser, &script, &[]);
    assert_eq!(drawn.as_array().unwrap().len(), 13);
    for figure in drawn.as_array().unwrap() {
        let id = figure[0].as_str().unwrap();
        let came = html.split_once(&format!("id=\"{id}\">")).unwrap().1;
        let came = came.split_once("</svg>").unwrap().0;
        for (i, axis) in [(1, "x"), (2, "y")] {
            let begin = format!("<text class=\"tick {axis}\"");
            let texts = came.split(&begin).skip(1);
            let texts: Vec<_> = texts
                .map(|text| text.split_once('>').unwrap().1.split('<').next().unwrap())
                .collect();
            assert_eq!(figure[i], serde_json::json!(texts), "{id}, axis {axis}");
        }
    }
}

#[test]
fn hovering_tells_all_lines_and_the_event() {
    let Some(browser) = browser() else { return };
    let sample = sample(&Shape::of("cassandra"));
    let script = asked(
        "send(id, 'pointermove', 0.6); const first = plot(id).querySelector('.tip').innerText;
         const other = svg('trial-0001-lag-over-time').querySelector('.cursor');
         const kin = other.getAttribute('visibility');
         send(id, 'pointermove', 0.48); const second = plot(id).querySelector('.tip').innerText;
         send(id, 'pointerleave', 0.5);
         return [first, kin, second, plot(id).querySelector('.tip').hidden];",
    );
    let answer = sample.ask(&browser, &script, &[]);
    let (first, second) = (answer[0].as_str().unwrap(), answer[2].as_str().unwrap());
    assert!(first.contains(" s\n") && first.contains("ok ") && first.contains("/s"), "{first}");
    assert!(first.contains("errors") && first.contains("scheduled 5"), "{first}");
    // The pointer is in the two seconds in which nothing was done.
    assert!(second.contains("ok 0/s") && second.contains("For 2 s no operation ended"), "{second}");
    assert_eq!((answer[1].as_str(), answer[3].as_bool()), (Some("visible"), Some(true)));
}

#[test]
fn dragging_zooms_all_plots_over_time_and_a_double_click_resets() {
    let Some(browser) = browser() else { return };
    let sample = sample(&Shape::of("cassandra"));
    let script = asked(
        "const other = 'trial-0001-service-time-over-time'; const before = ticks(other, 'x');
         send(id, 'pointerdown', 0.3); send(id, 'pointermove', 0.5); send(id, 'pointerup', 0.5);
         const zoomed = ticks(other, 'x');
         const seen = !plot(id).querySelector('.tools button:nth-child(3)').hidden;
         svg(id).dispatchEvent(new MouseEvent('dblclick', { bubbles: true }));
         const reset = ticks(other, 'x');
         key(id, 'ArrowRight'); key(id, 'ArrowRight');
         const told = plot(id).querySelector('.tip').innerText;
         key(id, '+'); const near = ticks(id, 'x'); key(id, 'Escape');
         plot(id).querySelector('.legend svg').dispatchEvent(new MouseEvent('click'));
         return [before, zoomed, seen, reset, told, near, ticks(id, 'x'), ticks(id, 'y')];",
    );
    let answer = sample.ask(&browser, &script, &[]);
    assert_eq!(answer[0], answer[3]);
    assert_ne!(answer[0], answer[1]);
    assert_eq!(answer[2], true);
    assert!(answer[4].as_str().unwrap().starts_with("1.5 s"), "{}", answer[4]);
    assert_ne!(answer[5], answer[0]);
    assert_eq!(answer[6], answer[0]);
    // Without the line of the ok ones the scheduled rate is the largest.
    let last = answer[7].as_array().unwrap().last().unwrap();
    assert_eq!(last, "6\u{202f}000", "{answer}");
}

#[test]
fn every_plot_gives_its_data() {
    let Some(browser) = browser() else { return };
    let sample = sample(&Shape::of("cassandra"));
    let dir = sample.page.parent().unwrap();
    report::build_with_data(dir).unwrap();
    let script = asked(
        "const saved = []; URL.createObjectURL = (blob) => { saved.push(blob); return '#'; };
         HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };
         const texts = []; const real = Blob; window.Blob = class extends real {
           constructor(parts, kind) { super(parts, kind); texts.push(parts.join('')); } };
         for (const button of plot(id).querySelectorAll('.tools button')) {
           if (['CSV', 'JSON'].includes(button.textContent)) button.click(); }
         return [texts, saved.filter((one) => typeof one === 'string')];",
    );
    let answer = sample.ask(&browser, &script, &[]);
    let file = |name: &str| fs::read_to_string(dir.join(report::REPORT_DATA).join(name)).unwrap();
    assert_eq!(answer[0][0].as_str().unwrap(), file("trial-0001-throughput.csv"));
    let json: Value = serde_json::from_str(answer[0][1].as_str().unwrap()).unwrap();
    let expected: Value = serde_json::from_str(&file("trial-0001-throughput.json")).unwrap();
    // Numbers like 5000 and 5000.0 are the same.
    assert_eq!(json["x"], expected["x"]);
    assert_eq!(
        json["series"].as_array().unwrap().len(),
        expected["series"].as_array().unwrap().len()
    );
    let names = ["trial-0001-throughput.csv", "trial-0001-throughput.json"];
    assert_eq!(answer[1], serde_json::json!(names));
}

#[test]
fn the_dark_page_is_dark_and_readable() {
    let Some(browser) = browser() else { return };
    let sample = sample(&Shape::of("cassandra"));
    // Contrast as WCAG 2 defines it, of texts and lines against the paper.
    let script = "
        const light = (css) => { const [r, g, b] = css.match(/[\\d.]+/g).map((c) => c / 255)
            .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
          return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const paper = light(getComputedStyle(document.body).backgroundColor);
        const contrast = (one) => { const l = light(one);
          return (Math.max(l, paper) + 0.05) / (Math.min(l, paper) + 0.05); };
        const probe = document.createElement('i'); document.body.append(probe);
        const of = (name) => { probe.style.color = `var(--${name})`;
          return contrast(getComputedStyle(probe).color); };
        return [paper, ['ink', 'soft', 'ok', 'warn', 'bad'].map(of),
          [0, 1, 2, 3, 4, 5, 6, 7].map((n) => of(`c${n}`))];";
    for (arguments, dark) in
        [(&["--blink-settings=preferredColorScheme=0"][..], true), (&[], false)]
    {
        let answer = sample.ask(&browser, script, arguments);
        assert_eq!(answer[0].as_f64().unwrap() < 0.1, dark, "{answer}");
        let least = |i: usize| {
            let all = answer[i].as_array().unwrap().iter().filter_map(Value::as_f64);
            all.fold(f64::INFINITY, f64::min)
        };
        assert!(least(1) >= 4.5, "a text is too faint: {answer}");
        assert!(least(2) >= 3.0, "a line is too faint: {answer}");
    }
}

#[test]
fn a_phone_scrolls_tables_and_not_the_page() {
    let Some(browser) = browser() else { return };
    let sample = sample(&Shape { trials: 3, ..Shape::of("cassandra") });
    // A window of the browser has a least width; a frame has not.
    let frame = sample.home.path().join("phone.html");
    let html = fs::read_to_string(&sample.page).unwrap();
    let html = html.replace('&', "&amp;").replace('"', "&quot;");
    let text = format!(
        "<!DOCTYPE html><body><iframe id=\"f\" style=\"width:360px;height:800px;border:0\" \
         srcdoc=\"{html}\"></iframe><script>addEventListener('load', () => setTimeout(() => {{ \
         const page = document.getElementById('f').contentDocument; \
         const wide = [...page.querySelectorAll('main *')].filter((e) => \
           !e.closest('.wide, svg') && e.getBoundingClientRect().right > 361); \
         document.body.dataset.answer = [page.defaultView.innerWidth, \
           page.documentElement.scrollWidth, \
           page.querySelector('svg.chart').viewBox.baseVal.width, \
           wide.slice(0, 5).map((e) => e.tagName)].join(' '); }}, 500));</script>"
    );
    fs::write(&frame, text).unwrap();
    let answer = ask_again(|| {
        let dom = browse(&browser, sample.home.path(), &frame, &["--dump-dom"]);
        Some(dom.split_once("data-answer=\"")?.1.split('"').next()?.to_owned())
    });
    let answer = answer.unwrap();
    let words: Vec<&str> = answer.split(' ').collect();
    let number = |i: usize| words[i].parse::<f64>().unwrap();
    assert_eq!(number(0), 360.0, "{answer}");
    assert!(number(1) <= number(0), "the page scrolls sideways: {answer}");
    assert_eq!(words[3], "", "{answer}");
    // Drawn for the width it has: its texts have the size that was meant.
    assert!((280.0..=360.0).contains(&number(2)), "{answer}");
}

#[test]
fn on_paper_it_is_some_pages_of_a4() {
    let Some(browser) = browser() else { return };
    let sample = sample(&Shape::of("cassandra"));
    let pdf = sample.home.path().join("page.pdf");
    let print = format!("--print-to-pdf={}", pdf.display());
    browse(&browser, sample.home.path(), &sample.page, &[&print, "--no-pdf-header-footer"]);
    let bytes = fs::read(&pdf).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let pages = text.matches("/Type /Page\n").count();
    assert!((4..=12).contains(&pages), "{pages} pages");
    let a4 = text.matches("/MediaBox [0 0 594.95996 841.91998]").count()
        + text.matches("/MediaBox [0 0 595.91998 842.88]").count()
        + text.matches("/MediaBox [0 0 595").count()
        + text.matches("/MediaBox [0 0 594").count();
    assert!(a4 >= pages, "{pages} pages, {a4} of A4");
}
