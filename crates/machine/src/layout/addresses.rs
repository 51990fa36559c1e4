//! Where instances listen.
//!
//! Input: loopback, or a list of addresses of the host. Output: an address and ports for each
//! placement. On loopback each instance has an address of its own, 127.0.0.1 on, and the usual
//! ports. Given addresses are dealt in turn; instances that share one have ports 100 apart. JMX
//! ports are always 100 apart.

use super::{LayoutError, Placement, Reason, Request};
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr};

/// Between the ports of instances on one address.
const STEP: u32 = 100;

/// A port of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    /// What for; see [`super::Database::ports`].
    pub name: &'static str,
    /// Its number.
    pub number: u16,
}

/// Addresses to listen on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Addresses {
    /// 127.0.0.1, 127.0.0.2, ...: for clients on this host.
    #[default]
    Loopback,
    /// These, of NICs of the host.
    Given(Vec<IpAddr>),
}

pub(super) fn give(
    request: &Request,
    placements: &mut [Placement],
    why: &mut Vec<Reason>,
) -> Result<(), LayoutError> {
    let given = match &request.addresses {
        Addresses::Loopback => None,
        Addresses::Given(list) if list.is_empty() => return Err(LayoutError::NoAddress),
        Addresses::Given(list) => Some(list),
    };
    let instances = placements.len();
    for (index, placement) in placements.iter_mut().enumerate() {
        let (address, round) = match given {
            // 127.0.0.0/8 has room for more than there can be instances.
            None => {
                let first = u32::from(Ipv4Addr::LOCALHOST);
                (IpAddr::V4(Ipv4Addr::from(first + index as u32)), 0)
            }
            Some(list) => (list[index % list.len()], (index / list.len()) as u32),
        };
        placement.address = address;
        placement.ports = ports(request, round, index as u32)
            .ok_or(LayoutError::Ports { instance: index + 1, address })?;
    }
    let text = match given {
        None => "127.0.0.1 and up, one for each instance, on the usual ports".to_owned(),
        Some(list) if list.len() >= instances => "as given, on the usual ports".to_owned(),
        Some(list) => format!(
            "{instances} instances on {} addresses in turn: those that share one have ports {STEP} \
             apart",
            list.len()
        ),
    };
    why.push(Reason::new("address", text));
    Ok(())
}

fn ports(request: &Request, round: u32, index: u32) -> Option<Vec<Port>> {
    let port = |&(name, first): &(&'static str, u16)| {
        // JMX listens on 127.0.0.1, whatever the address of the instance.
        let steps = if name == "jmx" { index } else { round };
        let number = u32::from(first).checked_add(steps.checked_mul(STEP)?)?;
        Some(Port { name, number: u16::try_from(number).ok()? })
    };
    request.database.ports().iter().map(port).collect()
}
