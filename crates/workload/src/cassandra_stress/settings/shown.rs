//! Words of a line that count for nothing here but are shown among its settings.

use crate::cassandra_stress::line::Line;

/// What the original prints of them; its defaults where the line does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// `-insert revisit=`
    pub revisit: String,
    /// `-insert visits=`
    pub visits: String,
    /// `-insert partitions=`
    pub partitions: Option<String>,
    /// `-insert select-ratio=`
    pub select: Option<String>,
    /// `-insert row-population-ratio=`
    pub row_population: String,
    /// `-insert batchtype=`, in capitals.
    pub batch_type: Option<String>,
    /// `-mode auth-provider=`
    pub auth_provider: Option<String>,
    /// `-mode maxPending=`
    pub max_pending: String,
    /// `-mode simplenative`
    pub simple: bool,
    /// `-port thrift=`
    pub thrift_port: String,
    /// `-port jmx=`
    pub jmx_port: String,
    /// Options of `-transport` with their values; passwords left out.
    pub transport: Vec<(&'static str, Option<String>)>,
    /// `-tokenrange wrap`
    pub wrap: bool,
    /// `-tokenrange split-factor=`
    pub split_factor: String,
}

/// Options of `-transport` in the original's order, with its defaults.
const TRANSPORT: [(&str, Option<&str>); 9] = [
    ("factory", Some("org.apache.cassandra.thrift.TFramedTransportFactory")),
    ("truststore", None),
    ("truststore-password", None),
    ("keystore", None),
    ("keystore-password", None),
    ("ssl-protocol", Some("TLS")),
    ("ssl-alg", Some("SunX509")),
    ("store-type", Some("JKS")),
    ("ssl-ciphers", Some("TLS_RSA_WITH_AES_128_CBC_SHA,TLS_RSA_WITH_AES_256_CBC_SHA")),
];

impl Shown {
    /// Of a line that is not read yet.
    pub(super) fn of(line: &Line) -> Self {
        let word = |group: &str, prefix: &str| {
            let group = line.groups.iter().find(|known| known.name == group)?;
            group.words.iter().find_map(|word| {
                let start = word.text.get(..prefix.len())?;
                start.eq_ignore_ascii_case(prefix).then(|| word.text[prefix.len()..].to_owned())
            })
        };
        let or = |group, prefix, default: &str| word(group, prefix).unwrap_or(default.to_owned());
        let option = |(name, default): &(&'static str, Option<&str>)| {
            let given = word("-transport", &format!("{name}="));
            let covered = given.map(|given| match name.ends_with("password") {
                true => "*suppressed*".to_owned(),
                false => given,
            });
            (*name, covered.or_else(|| default.map(str::to_owned)))
        };
        Self {
            revisit: or("-insert", "revisit=", "uniform(1..1M)"),
            visits: or("-insert", "visits=", "fixed(1)"),
            partitions: word("-insert", "partitions="),
            select: word("-insert", "select-ratio="),
            row_population: or("-insert", "row-population-ratio=", "fixed(1)/1"),
            batch_type: word("-insert", "batchtype=").map(|name| name.to_uppercase()),
            auth_provider: word("-mode", "auth-provider="),
            max_pending: or("-mode", "maxPending=", "128"),
            simple: word("-mode", "simplenative").is_some(),
            thrift_port: or("-port", "thrift=", "9160"),
            jmx_port: or("-port", "jmx=", "7199"),
            transport: TRANSPORT.iter().map(option).collect(),
            wrap: word("-tokenrange", "wrap").is_some(),
            split_factor: or("-tokenrange", "split-factor=", "1"),
        }
    }
}

/// What makes of a store of Java's keys the files that TLS is spoken with here, and the flags that
/// name them; None where `prefix` names no store.
pub(super) fn store_as_pem(prefix: &str, store: &str) -> Option<String> {
    let store = shell_quoted(store);
    match prefix {
        "truststore=" => Some(format!(
            "Leave -transport out. Make PEM of it with `keytool -list -rfc -keystore {store} > \
             ca.pem`, and write --tls --tls-ca ca.pem before the command."
        )),
        "keystore=" => Some(format!(
            "Leave -transport out. Make PEM of it with `keytool -importkeystore -srckeystore \
             {store} -destkeystore client.p12 -deststoretype PKCS12`, `openssl pkcs12 -in \
             client.p12 -nokeys -out cert.pem`, `openssl pkcs12 -in client.p12 -nocerts -nodes \
             -out key.pem`, of a key on an elliptic curve also `openssl ec -in key.pem -out \
             key.pem`, and write --tls --tls-cert cert.pem --tls-key key.pem before the command."
        )),
        _ => None,
    }
}

/// A name as a shell takes it.
fn shell_quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=@%:".contains(c);
    match !name.is_empty() && name.chars().all(plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', "'\\''")),
    }
}
