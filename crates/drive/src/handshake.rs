//! How a connection begins: STARTUP, and a password where the target wants one.
//!
//! Frame by frame: what the target says -> ready, the frame to answer with, or why it will not do.
//! The password goes by SASL PLAIN, as Cassandra's `PasswordAuthenticator` and those like it take
//! it (protocol v4, sections 4.1.2 and 4.2.3 to 4.2.5).

use thiserror::Error;
use units::Credentials;
use wire::cql::request::Request;
use wire::cql::response::Response;
use wire::cql::{ErrorCode, Header};

/// The error code of a refused password.
const BAD_CREDENTIALS: ErrorCode = ErrorCode(0x0100);

/// What follows the target's latest frame.
#[derive(Debug)]
pub(crate) enum Next {
    /// The connection takes requests.
    Ready,
    /// This frame is sent, and the target answers again.
    Send(Vec<u8>),
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
    /// It refused for another reason.
    #[error("it refused to begin: {0}")]
    Other(String),
}

/// The first frame; connections of the data plane register for nothing.
pub(crate) fn startup() -> Vec<u8> {
    frame(&Request::Startup(vec![("CQL_VERSION", "3.0.0"), ("DRIVER_NAME", "wideload")]))
}

/// What follows a frame of the target's before the connection is ready.
///
/// # Errors
/// [`Refusal`].
pub(crate) fn next(
    header: &Header,
    body: &[u8],
    credentials: Option<&Credentials>,
) -> Result<Next, Refusal> {
    let response = Response::decode(header, body).map_err(|e| Refusal::Other(e.to_string()))?;
    match (response, credentials) {
        (Response::Ready | Response::AuthSuccess, _) => Ok(Next::Ready),
        (Response::Authenticate(_), Some(who)) => {
            let token = ["", &who.user, who.password.expose()].join("\0");
            Ok(Next::Send(frame(&Request::AuthResponse(Some(token.as_bytes())))))
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

fn frame(request: &Request<'_>) -> Vec<u8> {
    let mut frame = Vec::new();
    request.encode(0, &mut frame);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Secret;
    use wire::cql::{HEADER_SIZE, Opcode, put};

    fn said(opcode: Opcode, who: Option<&Credentials>, body: &[u8]) -> Result<Next, Refusal> {
        next(&Header { body_size: body.len(), ..Header::response(0, opcode) }, body, who)
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
