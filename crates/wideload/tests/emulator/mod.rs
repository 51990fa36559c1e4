//! A guest with eight NUMA nodes on two sockets, emulated: a kernel, the program and a script, and
//! what they leave.
//!
//! Input: what `cargo xtask guest` has made in `target/guest`, the emulator, busybox. Output: a
//! directory with what `init.sh` has left, or what this machine lacks. It is booted once for all
//! tests of a program. Measured: 5 s until the script begins, 430 MB of host memory.
//!
//! Source: qemu(1) `-numa`; the kernel's Documentation/filesystems/initramfs buffer format (cpio
//! newc). Limits: x86-64; no hardware is virtualised, so that times in the guest mean nothing.

use super::eventually;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

pub(crate) const NUMAS: usize = 8;
pub(crate) const CPUS_PER_NUMA: usize = 2;
pub(crate) const NUMAS_PER_PACKAGE: usize = 4;
pub(crate) const MIB_PER_NUMA: usize = 256;
/// On a machine that does nothing else it takes 40 s.
const END_MAX: Duration = Duration::from_secs(400);
const EMULATOR: &str = "qemu-system-x86_64";

/// What the guest has left; None, with a line that says why, where it cannot be booted.
pub(crate) fn booted() -> Option<&'static Path> {
    static GUEST: OnceLock<Result<Result<PathBuf, String>, String>> = OnceLock::new();
    let run = || match lacking() {
        Some(what) => Ok(Err(what)),
        None => boot().map(Ok),
    };
    match GUEST.get_or_init(run) {
        Ok(Ok(left)) => Some(left),
        Ok(Err(why)) => {
            eprintln!("SKIP: {why}");
            None
        }
        Err(why) => panic!("{why}"),
    }
}

/// The firmware's distance between two NUMA nodes.
pub(crate) fn distance(from: usize, to: usize) -> usize {
    match (from == to, from / NUMAS_PER_PACKAGE == to / NUMAS_PER_PACKAGE) {
        (true, _) => 10,
        (_, true) => 16,
        _ => 32,
    }
}

fn parts() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guest")
}

/// What this machine has not.
fn lacking() -> Option<String> {
    if std::env::consts::ARCH != "x86_64" {
        return Some("only an x86-64 host emulates the guest".into());
    }
    let emulates = Command::new(EMULATOR).arg("--version").stdin(Stdio::null()).output();
    if !emulates.is_ok_and(|output| output.status.success()) {
        return Some(format!("there is no {EMULATOR}; install the package qemu-system-x86"));
    }
    if busybox().is_none() {
        return Some("there is no static busybox; install the package busybox-static".into());
    }
    let cure = "run cargo xtask guest";
    for part in ["vmlinuz", "wideload"] {
        if !parts().join(part).exists() {
            return Some(format!("there is no target/guest/{part}: {cure}"));
        }
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if changed(&parts().join("wideload")) < newest(&sources) {
        return Some(format!("target/guest/wideload is older than its sources: {cure}"));
    }
    None
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}

/// When the last file below a `src` below `dir` was changed.
fn newest(dir: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    let of = |path: PathBuf| match path.is_dir() {
        true => newest(&path),
        false if dir.components().any(|part| part.as_os_str() == "src") => changed(&path),
        false => None,
    };
    entries.filter_map(of).max()
}

/// One that runs without a dynamic linker.
fn busybox() -> Option<Vec<u8>> {
    let paths = ["/bin/busybox", "/usr/bin/busybox"];
    let found = paths.iter().find_map(|path| fs::read(path).ok())?;
    (asks_for_interpreter(&found) == Some(false)).then_some(found)
}

/// Whether a 64-bit ELF file has a program header of type `PT_INTERP` (elf(5)); None when it is no
/// such file.
fn asks_for_interpreter(elf: &[u8]) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    let half = |at: usize| Some(u16::from_le_bytes(elf.get(at..at + 2)?.try_into().ok()?) as usize);
    let table = u64::from_le_bytes(elf.get(0x20..0x28)?.try_into().ok()?) as usize;
    let (size, count) = (half(0x36)?, half(0x38)?);
    let kinds = (0..count).map(|index| elf.get(table + index * size..)?.get(..4)?.try_into().ok());
    let kinds = kinds.collect::<Option<Vec<[u8; 4]>>>()?;
    elf.starts_with(b"\x7fELF\x02\x01")
        .then(|| kinds.iter().any(|kind| u32::from_le_bytes(*kind) == PT_INTERP))
}

fn boot() -> Result<PathBuf, String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest");
    let _ = fs::remove_dir_all(&dir);
    let left = dir.join("left");
    fs::create_dir_all(&left).map_err(|e| format!("{}: {e}", left.display()))?;
    let (initramfs, console, sent) =
        (dir.join("initramfs"), dir.join("console.txt"), dir.join("left.tar.gz"));
    write_initramfs(&initramfs).map_err(|e| format!("{}: {e}", initramfs.display()))?;
    let mut command = emulator(&initramfs, &console, &sent);
    let mut guest = command.spawn().map_err(|e| format!("{EMULATOR}: {e}"))?;
    let ended = eventually(END_MAX, || !matches!(guest.try_wait(), Ok(None)));
    // It has ended, or is to.
    let _ = guest.kill();
    let _ = guest.wait();
    let said = fs::read(&console).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    println!("{said}");
    let _ = fs::remove_file(&initramfs);
    let unpacked = Command::new("tar").arg("-xzf").arg(&sent).arg("-C").arg(&left).status();
    let complete = unpacked.is_ok_and(|status| status.success()) && left.join("done").exists();
    match ended && complete {
        true => Ok(left),
        false => Err(format!("the guest did not come to its end within {END_MAX:?}: {said}")),
    }
}

/// Two sockets of four dies, each a NUMA node with its memory and cpus.
fn emulator(initramfs: &Path, console: &Path, sent: &Path) -> Command {
    let cpus = NUMAS * CPUS_PER_NUMA;
    let packages = NUMAS / NUMAS_PER_PACKAGE;
    let mut command = Command::new(EMULATOR);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut give = |words: String| {
        command.args(words.split(' '));
    };
    give("-accel tcg,thread=multi -cpu qemu64 -M q35,smm=off,sata=off -nodefaults".into());
    give(format!("-display none -no-reboot -m {}", NUMAS * MIB_PER_NUMA));
    let topology = format!("sockets={packages},dies={NUMAS_PER_PACKAGE},cores={CPUS_PER_NUMA}");
    give(format!("-smp {cpus},{topology},threads=1"));
    for numa in 0..NUMAS {
        give(format!("-object memory-backend-ram,id=m{numa},size={MIB_PER_NUMA}M"));
        give(format!("-numa node,nodeid={numa},memdev=m{numa}"));
        let (package, die) = (numa / NUMAS_PER_PACKAGE, numa % NUMAS_PER_PACKAGE);
        for core in 0..CPUS_PER_NUMA {
            let cpu = format!("socket-id={package},die-id={die},core-id={core},thread-id=0");
            give(format!("-numa cpu,node-id={numa},{cpu}"));
        }
    }
    for (from, to) in (0..NUMAS * NUMAS).map(|pair| (pair / NUMAS, pair % NUMAS)) {
        if from != to {
            give(format!("-numa dist,src={from},dst={to},val={}", distance(from, to)));
        }
    }
    command.arg("-kernel").arg(parts().join("vmlinuz")).arg("-initrd").arg(initramfs);
    // What takes time in the boot and is of no use here is left out.
    let quick = "panic=-1 quiet loglevel=1 nokaslr mitigations=off audit=0 tsc=reliable \
                 no_timer_check random.trust_cpu=1 cryptomgr.notests";
    command.args(["-append", &format!("console=ttyS0 {quick}")]);
    for port in [console, sent] {
        command.arg("-serial").arg(format!("file:{}", port.display()));
    }
    command
}

/// The guest's root: the program, busybox, the script.
fn write_initramfs(path: &Path) -> std::io::Result<()> {
    const DIR: u32 = 0o040_755;
    const PROGRAM: u32 = 0o100_755;
    let mut out = std::io::BufWriter::new(File::create(path)?);
    let mut entry = |name: &str, mode: u32, content: &[u8]| -> std::io::Result<()> {
        // Magic, inode, mode, owner, group, links, time, size, four device numbers, size of the
        // name with its end, no checksum.
        write!(out, "070701{:08X}{mode:08X}{:08X}{:08X}{:08X}{:08X}", 0, 0, 0, 1, 0)?;
        write!(out, "{:08X}{:032X}{:08X}{:08X}{name}\0", content.len(), 0, name.len() + 1, 0)?;
        // Head and name, and content, end at a multiple of four bytes.
        out.write_all(&[0; 3][..(4 - (110 + name.len() + 1) % 4) % 4])?;
        out.write_all(content)?;
        out.write_all(&[0; 3][..(4 - content.len() % 4) % 4])
    };
    for dir in ["bin", "proc", "sys", "dev", "tmp"] {
        entry(dir, DIR, &[])?;
    }
    entry("init", PROGRAM, include_bytes!("init.sh"))?;
    entry("bin/busybox", PROGRAM, &busybox().unwrap_or_default())?;
    entry("bin/wideload", PROGRAM, &fs::read(parts().join("wideload"))?)?;
    entry("TRAILER!!!", 0, &[])?;
    out.flush()
}
