//! Certificates of tests: made where they run, in a directory that goes with them.

#![allow(dead_code)] // each test program uses its part

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// An authority, and what it has signed, as files of a directory.
pub(crate) struct Authority<'a> {
    dir: &'a Path,
    name: &'a str,
    issuer: Issuer<'static, KeyPair>,
}

impl<'a> Authority<'a> {
    pub(crate) fn new(dir: &'a Path, name: &'a str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = params.self_signed(&key).unwrap();
        fs::write(dir.join(format!("{name}.pem")), own.pem()).unwrap();
        Self { dir, name, issuer: Issuer::new(params, key) }
    }

    /// One that serves with its own certificate, as `openssl req -x509` makes them; the files of
    /// the certificate and its key.
    pub(crate) fn serving(dir: &Path, name: &str, subjects: &[&str]) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let mut params = Self::params(name, subjects);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let (cert, private) = (dir.join(format!("{name}.pem")), dir.join(format!("{name}.key")));
        fs::write(&cert, params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(&private, key.serialize_pem()).unwrap();
        (cert, private)
    }

    /// The file of its own certificate.
    pub(crate) fn pem(&self) -> PathBuf {
        self.dir.join(format!("{}.pem", self.name))
    }

    /// Signs for these names and addresses; the files of the certificate and its key.
    pub(crate) fn sign(&self, name: &str, subjects: &[&str]) -> (PathBuf, PathBuf) {
        self.write(name, Self::params(name, subjects))
    }

    /// One that is no good any more.
    pub(crate) fn sign_expired(&self, name: &str, subjects: &[&str]) -> (PathBuf, PathBuf) {
        let mut params = Self::params(name, subjects);
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        self.write(name, params)
    }

    fn params(name: &str, subjects: &[&str]) -> CertificateParams {
        let subjects: Vec<_> = subjects.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(subjects).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params
    }

    fn write(&self, name: &str, params: CertificateParams) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let at = |kind: &str| self.dir.join(format!("{name}.{kind}"));
        let (cert, private) = (at("pem"), at("key"));
        fs::write(&cert, signed.pem()).unwrap();
        fs::write(&private, key.serialize_pem()).unwrap();
        fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
        (cert, private)
    }
}
