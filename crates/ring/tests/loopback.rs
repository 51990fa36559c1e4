//! The epoll engine over real sockets on loopback: split frames, a peer that does not read,
//! closing, accepting.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use ring::{BufferSizes, ConnectionId, Epoll, Event, Flush, Ring};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use units::{Nanos, clock};

const SIZES: BufferSizes = BufferSizes { send: 4096, receive: 256, receive_max: 1 << 16 };

fn pair() -> (Epoll, ConnectionId, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut ring = Epoll::new(SIZES).unwrap();
    let connection = ring.connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    let events = wait_for_event(&mut ring);
    assert!(matches!(events[..], [Event::Connected { .. }]), "{events:?}");
    (ring, connection, peer)
}

fn wait_for_event(ring: &mut Epoll) -> Vec<Event> {
    let (mut events, until) = (Vec::new(), clock::now() + Nanos::from_secs(5));
    while events.is_empty() && clock::now() < until {
        ring.wait(Some(until), &mut events).unwrap();
    }
    assert!(!events.is_empty(), "nothing happened for 5 s");
    events
}

#[test]
fn bytes_arrive_in_order_whatever_their_pieces() {
    let (mut ring, connection, mut peer) = pair();
    let message: Vec<u8> = (0..50_000u32).map(|i| (i % 251) as u8).collect();
    let sender = {
        let message = message.clone();
        std::thread::spawn(move || message.chunks(997).for_each(|c| peer.write_all(c).unwrap()))
    };
    let mut received = Vec::new();
    while received.len() < message.len() {
        for event in wait_for_event(&mut ring) {
            assert!(matches!(event, Event::Received { .. }) || received.len() == message.len());
            // Leave a torn rest now and then, as a frame's decoder would.
            let bytes = ring.received(connection);
            let size = if bytes.len() > 100 { bytes.len() - 7 } else { bytes.len() };
            received.extend_from_slice(&bytes[..size]);
            ring.consume(connection, size);
        }
        if received.len() + ring.received(connection).len() == message.len() {
            received.extend_from_slice(ring.received(connection));
        }
    }
    sender.join().unwrap();
    assert_eq!(received, message);
}

#[test]
fn a_peer_that_does_not_read_delays_and_loses_nothing() {
    let (mut ring, connection, mut peer) = pair();
    let chunk = [7u8; 4096];
    let mut offered = 0usize;
    // Until the kernel takes no more: the half in flight stays, the other fills up.
    loop {
        ring.filling(connection).append(|out| out.extend_from_slice(&chunk));
        offered += chunk.len();
        if ring.flush(connection).unwrap() == Flush::Waiting {
            break;
        }
        assert!(offered < 1 << 30, "the kernel's buffers have no end");
    }
    assert!(ring.unsent(connection) >= chunk.len());
    let reader = std::thread::spawn(move || {
        let mut got = 0;
        let mut buffer = vec![0u8; 1 << 16];
        while got < offered {
            let size = peer.read(&mut buffer).unwrap();
            assert!(size > 0 && buffer[..size].iter().all(|b| *b == 7));
            got += size;
        }
    });
    while ring.unsent(connection) > 0 {
        for event in wait_for_event(&mut ring) {
            assert!(matches!(event, Event::Writable { .. }), "{event:?}");
            ring.flush(connection).unwrap();
        }
    }
    reader.join().unwrap();
}

#[test]
fn closing_is_told_once_and_the_place_is_reused() {
    let (mut ring, connection, peer) = pair();
    drop(peer);
    let events = wait_for_event(&mut ring);
    assert!(matches!(events[..], [Event::Closed { error: None, .. }]), "{events:?}");
    let mut again = Vec::new();
    ring.wait(Some(clock::now() + Nanos::from_millis(20)), &mut again).unwrap();
    assert!(again.is_empty(), "{again:?}");
    ring.close(connection);
    assert!(ring.received(connection).is_empty());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(ring.connect(listener.local_addr().unwrap()).unwrap(), connection);
}

#[test]
fn a_refused_connection_is_an_event() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut ring = Epoll::new(SIZES).unwrap();
    // Refused at once or by an event, as the kernel likes.
    if ring.connect(port).is_ok() {
        let events = wait_for_event(&mut ring);
        assert!(matches!(events[..], [Event::Closed { error: Some(_), .. }]), "{events:?}");
    }
}

#[test]
fn a_frame_beyond_the_limit_closes_the_connection() {
    let (mut ring, _, mut peer) = pair();
    let sender = std::thread::spawn(move || {
        // The connection is closed under its hands.
        let _ = peer.write_all(&vec![1u8; 1 << 17]);
        peer
    });
    loop {
        match wait_for_event(&mut ring).pop() {
            Some(Event::Received { .. }) => {}
            Some(Event::Closed { connection, error }) => {
                assert!(error.unwrap().to_string().contains("longer"));
                ring.close(connection);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    drop(sender.join().unwrap());
}

#[test]
fn paused_connections_are_not_received_from() {
    let (mut ring, connection, mut peer) = pair();
    ring.pause_receiving(connection, true).unwrap();
    peer.write_all(b"x").unwrap();
    let mut events = Vec::new();
    ring.wait(Some(clock::now() + Nanos::from_millis(20)), &mut events).unwrap();
    assert!(events.is_empty(), "{events:?}");
    ring.pause_receiving(connection, false).unwrap();
    assert!(matches!(wait_for_event(&mut ring)[..], [Event::Received { .. }]));
}

#[test]
fn connections_are_shared_out_evenly_whoever_accepts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut rings: Vec<_> = (0..3).map(|_| Epoll::new(SIZES).unwrap()).collect();
    let mailboxes: Vec<_> = rings.iter_mut().map(|ring| ring.mailbox().unwrap()).collect();
    rings[0].share(mailboxes.clone());
    rings[0].listen(listener).unwrap();
    let mut held: Vec<Vec<ConnectionId>> = vec![Vec::new(); rings.len()];
    let accept = |rings: &mut [Epoll], held: &mut [Vec<ConnectionId>], expected: usize| {
        let until = clock::now() + Nanos::from_secs(5);
        while held.iter().map(Vec::len).sum::<usize>() < expected && clock::now() < until {
            for (ring, held) in rings.iter_mut().zip(&mut *held) {
                let mut events = Vec::new();
                ring.wait(Some(clock::now() + Nanos::from_millis(5)), &mut events).unwrap();
                held.extend(events.iter().filter_map(|event| match event {
                    Event::Accepted { connection, .. } => Some(*connection),
                    _ => None,
                }));
            }
        }
        held.iter().map(Vec::len).collect::<Vec<_>>()
    };
    let mut clients: Vec<_> = (0..9).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(accept(&mut rings, &mut held, 9), [3, 3, 3]);
    // What is closed makes room: the next ones go where the fewest are.
    for connection in held[1].drain(..) {
        rings[1].close(connection);
    }
    clients.extend((0..3).map(|_| TcpStream::connect(address).unwrap()));
    assert_eq!(accept(&mut rings, &mut held, 9), [3, 3, 3]);
    assert!(mailboxes.iter().all(|mailbox| mailbox.connections() == 3));
}
