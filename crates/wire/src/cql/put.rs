//! Writing a body: appends the notations of section 3 to a vector.
//!
//! Lengths beyond what a notation can carry are cut to what it can: callers check sizes where input
//! decides them.

use super::Consistency;
use std::net::IpAddr;

/// `[byte]`
pub fn u8(out: &mut Vec<u8>, value: u8) {
    out.push(value);
}

/// `[short]`
pub fn u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// `[int]`
pub fn i32(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// `[long]`
pub fn i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// `[string]`; cut at 65535 bytes, on a character's boundary.
pub fn string(out: &mut Vec<u8>, value: &str) {
    let mut size = value.len().min(usize::from(u16::MAX));
    while !value.is_char_boundary(size) {
        size -= 1;
    }
    u16(out, size as u16);
    out.extend_from_slice(&value.as_bytes()[..size]);
}

/// `[long string]`
pub fn long_string(out: &mut Vec<u8>, value: &str) {
    i32(out, value.len() as i32);
    out.extend_from_slice(value.as_bytes());
}

/// `[short bytes]`; ids are far below the limit of 65535.
pub fn short_bytes(out: &mut Vec<u8>, value: &[u8]) {
    let size = value.len().min(usize::from(u16::MAX));
    u16(out, size as u16);
    out.extend_from_slice(&value[..size]);
}

/// `[bytes]`
#[inline]
pub fn bytes(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(value) => {
            i32(out, value.len() as i32);
            out.extend_from_slice(value);
        }
        None => i32(out, -1),
    }
}

/// `[string list]`
pub fn string_list(out: &mut Vec<u8>, values: &[&str]) {
    u16(out, values.len() as u16);
    values.iter().for_each(|v| string(out, v));
}

/// `[string map]`
pub fn string_map(out: &mut Vec<u8>, pairs: &[(&str, &str)]) {
    u16(out, pairs.len() as u16);
    for (key, value) in pairs {
        string(out, key);
        string(out, value);
    }
}

/// `[string multimap]`
pub fn string_multimap(out: &mut Vec<u8>, pairs: &[(&str, &[&str])]) {
    u16(out, pairs.len() as u16);
    for (key, values) in pairs {
        string(out, key);
        string_list(out, values);
    }
}

/// `[inet]`
pub fn inet(out: &mut Vec<u8>, address: IpAddr, port: i32) {
    match address {
        IpAddr::V4(a) => {
            out.push(4);
            out.extend_from_slice(&a.octets());
        }
        IpAddr::V6(a) => {
            out.push(16);
            out.extend_from_slice(&a.octets());
        }
    }
    i32(out, port);
}

/// `[consistency]`
pub fn consistency(out: &mut Vec<u8>, level: Consistency) {
    u16(out, level as u16);
}
