//! Whether an instance answers, and whom it knows.
//!
//! Input: an address of CQL. Output: SUPPORTED for OPTIONS, or the peers in its tables; an error
//! means "not yet". Source: `native_protocol_v4.spec`. Limits: one question a connection, answers
//! of at most [`ANSWER_SIZE_MAX`]; where a password is wanted, the superuser that Cassandra
//! itself creates; rings that take TLS alone are not known to be whole.

use ring::tls::is_spoken_at;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use units::Nanos;
use wire::cql::request::{QueryParameters, Request};
use wire::cql::response::Response;
use wire::cql::{Consistency, HEADER_SIZE, Header};

/// For one answer; a busy JVM takes long for its first.
const ANSWER_MAX: Nanos = Nanos::from_secs(5);
const ANSWER_SIZE_MAX: usize = 1 << 20;
/// Name and password of the superuser that a new cluster has, as a SASL PLAIN token (RFC 4616).
const SUPERUSER: &[u8] = b"\0cassandra\0cassandra";

/// Whether what listens there answers OPTIONS with SUPPORTED, or takes TLS alone.
pub(crate) fn speaks_cql(address: SocketAddr) -> io::Result<()> {
    let answered = Connection::open(address)?.ask(&Request::Options, |response| match response {
        Response::Supported(_) => Ok(()),
        other => Err(unexpected(other)),
    });
    match answered {
        // It says no more to somebody without a certificate.
        Err(_) if is_spoken_at(address, ANSWER_MAX) => Ok(()),
        answered => answered,
    }
}

/// How many other instances it has seen join.
pub(crate) fn peers(address: SocketAddr) -> io::Result<usize> {
    let mut connection = Connection::open(address)?;
    let startup = Request::Startup(vec![("CQL_VERSION", "3.0.0"), ("DRIVER_NAME", "wideload")]);
    let wants_password = connection.ask(&startup, |response| match response {
        Response::Ready => Ok(false),
        Response::Authenticate(_) => Ok(true),
        other => Err(unexpected(other)),
    })?;
    if wants_password {
        connection.ask(&Request::AuthResponse(Some(SUPERUSER)), |response| match response {
            Response::AuthSuccess => Ok(()),
            other => Err(unexpected(other)),
        })?;
    }
    let parameters = QueryParameters::plain(Consistency::LocalOne);
    let query = Request::Query("SELECT peer FROM system.peers", parameters);
    connection.ask(&query, |response| match response {
        Response::Rows(rows) => Ok(rows.count),
        other => Err(unexpected(other)),
    })
}

fn unexpected(response: &Response<'_>) -> io::Error {
    match response {
        Response::Error { message, .. } => io::Error::other((*message).to_owned()),
        _ => io::Error::other("an answer to another question"),
    }
}

struct Connection {
    socket: TcpStream,
}

impl Connection {
    fn open(address: SocketAddr) -> io::Result<Self> {
        let limit = ANSWER_MAX.to_duration();
        let socket = TcpStream::connect_timeout(&address, limit)?;
        socket.set_read_timeout(Some(limit))?;
        socket.set_write_timeout(Some(limit))?;
        Ok(Self { socket })
    }

    fn ask<T>(
        &mut self,
        request: &Request<'_>,
        read: impl FnOnce(&Response<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut frame = Vec::new();
        request.encode(0, &mut frame);
        self.socket.write_all(&frame)?;
        let mut head = [0u8; HEADER_SIZE];
        self.socket.read_exact(&mut head)?;
        let header = Header::decode(&head).map_err(io::Error::other)?;
        let header = header.filter(|header| header.body_size <= ANSWER_SIZE_MAX);
        let header = header.ok_or_else(|| io::Error::other("an answer that is too long"))?;
        let mut body = vec![0u8; header.body_size];
        self.socket.read_exact(&mut body)?;
        read(&Response::decode(&header, &body).map_err(io::Error::other)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use wire::cql::Opcode;
    use wire::cql::put;

    /// Answers each request with the next of these frames.
    fn server(answers: Vec<Vec<u8>>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            for answer in answers {
                let mut head = [0u8; HEADER_SIZE];
                socket.read_exact(&mut head).unwrap();
                let header = Header::decode(&head).unwrap().unwrap();
                socket.read_exact(&mut vec![0; header.body_size]).unwrap();
                socket.write_all(&answer).unwrap();
            }
        });
        address
    }

    fn frame(opcode: Opcode, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        Header::response(0, opcode).frame(&mut bytes, body);
        bytes
    }

    fn two_rows(out: &mut Vec<u8>) {
        for number in [wire::cql::response::result_kind::ROWS, 4, 1, 2] {
            put::i32(out, number);
        }
        put::bytes(out, Some(&[127, 0, 0, 2]));
        put::bytes(out, Some(&[127, 0, 0, 3]));
    }

    #[test]
    fn a_port_is_not_enough() {
        let supported = frame(Opcode::Supported, |out| put::u16(out, 0));
        speaks_cql(server(vec![supported])).unwrap();
        assert!(speaks_cql(server(vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()])).is_err());
        assert!(speaks_cql(server(vec![frame(Opcode::Ready, |_| {})])).is_err());
        assert!(speaks_cql(server(vec![])).is_err());
    }

    #[test]
    fn peers_are_counted_with_and_without_a_password() {
        let ready = frame(Opcode::Ready, |_| {});
        let authenticate = frame(Opcode::Authenticate, |out| put::string(out, "Password"));
        let success = frame(Opcode::AuthSuccess, |out| put::bytes(out, None));
        let rows = frame(Opcode::Result, two_rows);
        assert_eq!(peers(server(vec![ready, rows.clone()])).unwrap(), 2);
        assert_eq!(peers(server(vec![authenticate.clone(), success, rows])).unwrap(), 2);
        let refused = frame(Opcode::Error, |out| {
            put::i32(out, 0x0100);
            put::string(out, "bad password");
        });
        let error = peers(server(vec![authenticate, refused])).unwrap_err();
        assert!(error.to_string().contains("bad password"), "{error}");
    }
}
