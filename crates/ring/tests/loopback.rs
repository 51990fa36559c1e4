//! Both engines over real sockets on loopback: split frames, a peer that does not read, closing,
//! accepting. io_uring is left out, with a line, where the machine gives none.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use ring::{BufferSizes, ConnectionId, Epoll, Event, Flush, Ring, Uring};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use units::{Nanos, clock};

const SIZES: BufferSizes = BufferSizes { send: 4096, receive: 256, receive_max: 1 << 16 };

trait Engine: Ring + Sized {
    fn make() -> Self;
}

impl Engine for Epoll {
    fn make() -> Self {
        Self::new(SIZES).unwrap()
    }
}

impl Engine for Uring {
    fn make() -> Self {
        Self::new(SIZES).unwrap()
    }
}

/// A test of each engine.
macro_rules! of_both {
    ($($name:ident),+ $(,)?) => {
        mod epoll {
            $(#[test]
            fn $name() {
                super::$name::<ring::Epoll>();
            })+
        }
        mod io_uring {
            $(#[test]
            fn $name() {
                match ring::Uring::check() {
                    Ok(()) => super::$name::<ring::Uring>(),
                    Err(why) => println!("SKIP: {why}"),
                }
            })+
        }
    };
}

fn pair<E: Engine>() -> (E, ConnectionId, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut ring = E::make();
    let connection = ring.connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    let events = wait_for_event(&mut ring);
    assert!(matches!(events[..], [Event::Connected { .. }]), "{events:?}");
    (ring, connection, peer)
}

of_both!(
    bytes_arrive_in_order_whatever_their_pieces,
    rests_of_any_size_are_joined_by_what_follows,
    a_peer_that_does_not_read_delays_and_loses_nothing,
    closing_is_told_once_and_the_place_is_reused,
    a_refused_connection_is_an_event,
    a_frame_beyond_the_limit_closes_the_connection,
    paused_connections_are_not_received_from,
    connections_are_shared_out_evenly_whoever_accepts,
    what_waits_for_the_half_before_is_told_at_once,
    closing_while_requests_are_under_way,
    many_connections_at_once,
    a_ring_that_is_dropped_leaves_its_port_at_once,
);

fn wait_for_event<E: Engine>(ring: &mut E) -> Vec<Event> {
    let (mut events, until) = (Vec::new(), clock::now() + Nanos::from_secs(5));
    while events.is_empty() && clock::now() < until {
        ring.wait(Some(until), &mut events).unwrap();
    }
    assert!(!events.is_empty(), "nothing happened for 5 s");
    events
}

fn bytes_arrive_in_order_whatever_their_pieces<E: Engine>() {
    let (mut ring, connection, mut peer) = pair::<E>();
    let message: Vec<u8> = (0..50_000u32).map(|i| (i % 251) as u8).collect();
    let sender = {
        let message = message.clone();
        std::thread::spawn(move || message.chunks(997).for_each(|c| peer.write_all(c).unwrap()))
    };
    let mut received = Vec::new();
    while received.len() < message.len() {
        for event in wait_for_event(&mut ring) {
            // Leave a torn rest now and then, as a frame's decoder would.
            let bytes = ring.received(connection);
            let more = matches!(event, Event::Received { .. }) && bytes.len() > 100;
            let size = if more { bytes.len() - 7 } else { bytes.len() };
            assert!(more || received.len() + size == message.len() || bytes.len() <= 100);
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

/// More than all buffers of an engine hold, in pieces larger than one of them.
fn rests_of_any_size_are_joined_by_what_follows<E: Engine>() {
    const RESTS: [usize; 6] = [0, 7, 3000, 5000, 50_000, 1];
    let (mut ring, connection, mut peer) = pair::<E>();
    let message: Vec<u8> = (0..6_000_000u32).map(|i| (i % 251 + i / 70_001) as u8).collect();
    let sender = {
        let message = message.clone();
        std::thread::spawn(move || peer.write_all(&message).map(|()| peer))
    };
    let (mut received, mut turn) = (Vec::new(), 0);
    while received.len() + ring.received(connection).len() < message.len() {
        for event in wait_for_event(&mut ring) {
            assert!(matches!(event, Event::Received { .. }), "{event:?}");
            let bytes = ring.received(connection);
            let taken = bytes.len() - RESTS[turn % RESTS.len()].min(bytes.len());
            received.extend_from_slice(&bytes[..taken]);
            // One that finds too little leaves it untouched.
            if taken > 0 || turn % 2 == 0 {
                ring.consume(connection, taken);
            }
            turn += 1;
        }
        // So that much comes at once.
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    received.extend_from_slice(ring.received(connection));
    drop(sender.join().unwrap().unwrap());
    assert!(received == message, "{turn} turns");
}

fn a_peer_that_does_not_read_delays_and_loses_nothing<E: Engine>() {
    let (mut ring, connection, mut peer) = pair::<E>();
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
        peer
    });
    let (mut events, until) = (Vec::new(), clock::now() + Nanos::from_secs(10));
    while ring.unsent(connection) > 0 && clock::now() < until {
        ring.wait(Some(clock::now() + Nanos::from_millis(10)), &mut events).unwrap();
        for event in events.drain(..) {
            assert!(matches!(event, Event::Writable { .. }), "{event:?}");
            ring.flush(connection).unwrap();
        }
    }
    assert_eq!(ring.unsent(connection), 0);
    drop(reader.join().unwrap());
}

fn closing_is_told_once_and_the_place_is_reused<E: Engine>() {
    let (mut ring, connection, peer) = pair::<E>();
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

fn a_refused_connection_is_an_event<E: Engine>() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut ring = E::make();
    // Refused at once or by an event, as the kernel likes.
    if ring.connect(port).is_ok() {
        let events = wait_for_event(&mut ring);
        assert!(matches!(events[..], [Event::Closed { error: Some(_), .. }]), "{events:?}");
    }
}

fn a_frame_beyond_the_limit_closes_the_connection<E: Engine>() {
    let (mut ring, _, mut peer) = pair::<E>();
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

fn paused_connections_are_not_received_from<E: Engine>() {
    let (mut ring, connection, mut peer) = pair::<E>();
    ring.pause_receiving(connection, true).unwrap();
    peer.write_all(b"x").unwrap();
    let mut events = Vec::new();
    ring.wait(Some(clock::now() + Nanos::from_millis(20)), &mut events).unwrap();
    assert!(events.is_empty(), "{events:?}");
    ring.pause_receiving(connection, false).unwrap();
    assert!(matches!(wait_for_event(&mut ring)[..], [Event::Received { .. }]));
}

fn connections_are_shared_out_evenly_whoever_accepts<E: Engine>() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut rings: Vec<_> = (0..3).map(|_| E::make()).collect();
    let mailboxes: Vec<_> = rings.iter_mut().map(|ring| ring.mailbox().unwrap()).collect();
    rings[0].share(mailboxes.clone());
    rings[0].listen(listener).unwrap();
    let mut held: Vec<Vec<ConnectionId>> = vec![Vec::new(); rings.len()];
    let accept = |rings: &mut [E], held: &mut [Vec<ConnectionId>], expected: usize| {
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

fn what_waits_for_the_half_before_is_told_at_once<E: Engine>() {
    let (mut ring, connection, mut peer) = pair::<E>();
    for part in [b"first ", b"second"] {
        ring.filling(connection).append(|out| out.extend_from_slice(part));
        ring.flush(connection).unwrap();
    }
    let begin = clock::now();
    while ring.unsent(connection) > 0 {
        let mut events = Vec::new();
        ring.wait(Some(begin + Nanos::from_millis(20)), &mut events).unwrap();
        if events.iter().any(|event| matches!(event, Event::Writable { .. })) {
            ring.flush(connection).unwrap();
        }
    }
    let mut all = [0; 12];
    peer.read_exact(&mut all).unwrap();
    assert_eq!(&all, b"first second");
}

fn closing_while_requests_are_under_way<E: Engine>() {
    let (mut ring, connection, mut peer) = pair::<E>();
    // Bytes are on their way in both directions, and nobody is told of them any more.
    peer.write_all(&[1; 5000]).unwrap();
    ring.filling(connection).append(|out| out.extend_from_slice(&[2; 4000]));
    ring.flush(connection).unwrap();
    ring.close(connection);
    let mut events = Vec::new();
    ring.wait(Some(clock::now() + Nanos::from_millis(20)), &mut events).unwrap();
    assert!(events.is_empty() && ring.received(connection).is_empty(), "{events:?}");
    // The peer sees an end, in order or not.
    let mut rest = Vec::new();
    let _ = peer.read_to_end(&mut rest);
    assert!(rest.len() <= 4000);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(ring.connect(listener.local_addr().unwrap()).unwrap(), connection);
    // One that is not established yet can be closed, too.
    ring.close(connection);
    ring.wait(Some(clock::now() + Nanos::from_millis(20)), &mut events).unwrap();
    assert!(events.is_empty(), "{events:?}");
}

fn many_connections_at_once<E: Engine>() {
    const COUNT: usize = 700;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Answers what it gets, connection by connection.
    let echo = std::thread::spawn(move || {
        let mut ring = E::make();
        ring.listen(listener).unwrap();
        let (mut events, mut closed) = (Vec::new(), 0);
        while closed < COUNT {
            ring.wait(Some(clock::now() + Nanos::from_secs(10)), &mut events).unwrap();
            assert!(!events.is_empty(), "{closed} closed");
            for event in events.drain(..) {
                match event {
                    Event::Received { connection, .. } => {
                        let bytes = ring.received(connection).to_vec();
                        ring.consume(connection, bytes.len());
                        ring.filling(connection).append(|out| out.extend_from_slice(&bytes));
                        ring.flush(connection).unwrap();
                    }
                    Event::Writable { connection } => drop(ring.flush(connection).unwrap()),
                    Event::Closed { connection, .. } => {
                        ring.close(connection);
                        closed += 1;
                    }
                    _ => {}
                }
            }
        }
    });
    let mut ring = E::make();
    let ids: Vec<_> = (0..COUNT).map(|_| ring.connect(address).unwrap()).collect();
    let mut left = COUNT;
    while left > 0 {
        for event in wait_for_event(&mut ring) {
            match event {
                Event::Connected { connection } => {
                    let message = vec![connection.0 as u8; 3000];
                    ring.filling(connection).append(|out| out.extend_from_slice(&message));
                    ring.flush(connection).unwrap();
                }
                Event::Received { connection, .. } => {
                    let bytes = ring.received(connection);
                    assert!(bytes.iter().all(|byte| *byte == connection.0 as u8));
                    if bytes.len() == 3000 {
                        ring.consume(connection, 3000);
                        left -= 1;
                    }
                }
                Event::Writable { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
    ids.into_iter().for_each(|id| ring.close(id));
    // What is closed goes out with the next turn at the latest.
    ring.wait(Some(clock::now()), &mut Vec::new()).unwrap();
    echo.join().unwrap();
}

fn a_ring_that_is_dropped_leaves_its_port_at_once<E: Engine>() {
    let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for _ in 0..100 {
        // A thread of its own, as a server has: what it leaves to the kernel when it ends is late.
        let serving = std::thread::spawn(move || {
            let mut ring = E::make();
            ring.listen(listener).unwrap();
            let mut peer = TcpStream::connect(address).unwrap();
            let events = wait_for_event(&mut ring);
            assert!(matches!(events[..], [Event::Accepted { .. }]), "{events:?}");
            // By now it listens again.
            peer.write_all(b"x").unwrap();
            wait_for_event(&mut ring);
        });
        serving.join().unwrap();
        listener = TcpListener::bind(address).expect("the ring has let go of its port");
    }
}
