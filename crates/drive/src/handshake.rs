//! How a connection begins: STARTUP, and a password where the target wants one. What follows the
//! answer to STARTUP is framed, where the protocol is (v5, section 2.3.1).
//!
//! Frame by frame: what the target says -> ready, the frame to answer with, or why it will not do.
//! The password goes by SASL PLAIN, as Cassandra's `PasswordAuthenticator` and those like it take
//! it (protocol v4, sections 4.1.2 and 4.2.3 to 4.2.5).

use thiserror::Error;
use units::Credentials;
use wire::cql::request::Request;
use wire::cql::response::Response;
use wire::cql::{Compression, ErrorCode, Header, Protocol, RESPONSE};
use wire::shards::{Offer, keys};

/// The error code of a refused password.
const BAD_CREDENTIALS: ErrorCode = ErrorCode(0x0100);

/// What follows the target's latest frame.
#[derive(Debug)]
pub(crate) enum Next {
    /// The connection takes requests.
    Ready,
    /// This frame is sent, and the target answers again.
    Send(Vec<u8>),
    /// It was asked what it offers; None when that is no shards, or nonsense.
    Offered(Option<Offer>),
}

/// Why a target does not let a connection begin. The cure is in the text, the password is not.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum Refusal {
    /// It wants to know who we are.
    #[error(
        "it wants authentication ({authenticator}): give --user NAME and --password-file FILE (or \
         the environment variable WIDELOAD_PASSWORD)"
    )]
    CredentialsMissing { authenticator: String },
    /// It does not let this user in.
    #[error(
        "it refused user '{user}': {message}; check --user and the password in --password-file or \
         WIDELOAD_PASSWORD"
    )]
    Credentials { user: String, message: String },
    /// It speaks another version, or cannot compress that way.
    #[error(
        "it does not take {protocol}: {message}; --protocol 4 --compression none is what every CQL \
         server takes"
    )]
    Protocol { protocol: Protocol, message: String },
    /// It refused for another reason.
    #[error("it refused to begin: {0}")]
    Other(String),
}

/// Asks what the host offers; goes before STARTUP, where it may have shards.
pub(crate) fn options(protocol: Protocol) -> Vec<u8> {
    frame(protocol, &Request::Options)
}

/// The first frame; connections of the data plane register for nothing. `tablets`: we want to be
/// told of them.
pub(crate) fn startup(protocol: Protocol, tablets: bool) -> Vec<u8> {
    let mut options = vec![("CQL_VERSION", "3.0.0"), ("DRIVER_NAME", "wideload")];
    options.extend(tablets.then_some((keys::TABLETS, "")));
    match protocol.compression() {
        Compression::None => {}
        compression => options.push(("COMPRESSION", compression.name())),
    }
    frame(protocol, &Request::Startup(options))
}

/// What follows a frame of the target's before the connection is ready.
///
/// # Errors
/// [`Refusal`].
pub(crate) fn next(
    protocol: Protocol,
    header: &Header,
    body: &[u8],
    credentials: Option<&Credentials>,
) -> Result<Next, Refusal> {
    let response = Response::decode(header, body).map_err(|e| Refusal::Other(e.to_string()))?;
    let version = header.version & !RESPONSE;
    let other_version = version != protocol.version();
    let unspoken = |message: String| match protocol.is_bare() {
        true => Refusal::Other(message),
        false => Refusal::Protocol { protocol, message },
    };
    match (response, credentials) {
        (Response::Error { code, message, .. }, _)
            if other_version || code == ErrorCode::PROTOCOL =>
        {
            Err(unspoken(message.to_owned()))
        }
        _ if other_version => Err(unspoken(format!("it answers in version {version}"))),
        (Response::Ready | Response::AuthSuccess, _) => Ok(Next::Ready),
        // What makes no sense was told where the run was prepared.
        (Response::Supported(options), _) => {
            Ok(Next::Offered(Offer::read(&options).ok().flatten()))
        }
        (Response::Authenticate(_), Some(who)) => {
            let token = ["", &who.user, who.password.expose()].join("\0");
            Ok(Next::Send(frame(protocol, &Request::AuthResponse(Some(token.as_bytes())))))
        }
        (Response::Authenticate(authenticator), None) => {
            let authenticator = authenticator.to_owned();
            Err(Refusal::CredentialsMissing { authenticator })
        }
        (Response::Error { code: BAD_CREDENTIALS, message, .. }, Some(who)) => {
            Err(Refusal::Credentials { user: who.user.clone(), message: message.to_owned() })
        }
        (Response::Error { message, .. }, _) => Err(Refusal::Other(message.to_owned())),
        (Response::AuthChallenge(_), _) => {
            Err(Refusal::Other("it wants more than a password".to_owned()))
        }
        _ => Err(Refusal::Other("its answer to STARTUP is no answer to that".to_owned())),
    }
}

fn frame(protocol: Protocol, request: &Request<'_>) -> Vec<u8> {
    let mut frame = Vec::new();
    request.encode_at(protocol.version(), 0, &mut frame);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Secret;
    use wire::cql::{HEADER_SIZE, Opcode, put};

    fn said(opcode: Opcode, who: Option<&Credentials>, body: &[u8]) -> Result<Next, Refusal> {
        let header = Header { body_size: body.len(), ..Header::response(0, opcode) };
        next(Protocol::default(), &header, body, who)
    }

    fn ann() -> Credentials {
        Credentials { user: "ann".to_owned(), password: Secret::new("hunter2") }
    }

    #[test]
    fn a_password_goes_as_sasl_plain() {
        let mut body = Vec::new();
        put::string(&mut body, "PasswordAuthenticator");
        let who = ann();
        let Ok(Next::Send(frame)) = said(Opcode::Authenticate, Some(&who), &body) else {
            panic!("the target wants an answer");
        };
        assert_eq!(frame[4], Opcode::AuthResponse as u8);
        assert_eq!(frame[HEADER_SIZE..], *b"\0\0\0\x0c\0ann\0hunter2");
        assert!(matches!(said(Opcode::AuthSuccess, Some(&who), &[]), Ok(Next::Ready)));
        assert!(matches!(said(Opcode::Ready, None, &[]), Ok(Next::Ready)));
        let missing = said(Opcode::Authenticate, None, &body).unwrap_err();
        let authenticator = "PasswordAuthenticator".to_owned();
        assert_eq!(missing, Refusal::CredentialsMissing { authenticator });
    }

    #[test]
    fn refusals_name_the_user_and_not_the_password() {
        let mut body = Vec::new();
        put::i32(&mut body, 0x0100);
        put::string(&mut body, "wrong");
        let refused = said(Opcode::Error, Some(&ann()), &body).unwrap_err();
        let shown = format!("{refused} {refused:?}");
        assert!(shown.contains("'ann'") && !shown.contains("hunter2"), "{shown}");
        for (opcode, body) in
            [(Opcode::Error, &[][..]), (Opcode::AuthChallenge, &[0; 4]), (Opcode::Query, &[])]
        {
            assert!(matches!(said(opcode, None, body), Err(Refusal::Other(_))), "{opcode:?}");
        }
    }
}
