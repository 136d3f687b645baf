//! A host that takes part in a test: does what is ordered, and nothing that its own bounds do not allow.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::address::AllowedNetworks;
use crate::door::{Arrived, Dialling, Door, Guests, dial};
use crate::host::{HostCounters, now_ns, this_host};
use crate::ping::{PingStream, exchange};
use crate::plane::{BulkStream, drive, pool, wait_until};
use crate::wire::{
    DialOrder, LONGEST_NS, LaneOrder, MOST_ADDRESSES, MOST_LANES, MOST_STREAMS, NetAnswer, NetOrder,
    NodeRecord, RunOrder,
};

/// All connections of a stage come within this time.
const COMING: Duration = Duration::from_secs(20);
/// A start is no further away.
const FURTHEST_NS: u64 = 60 * 1_000_000_000;

/// Where its guests come in.
#[derive(Debug)]
enum Entrance {
    /// A port of its own, for each stage.
    Own(Option<Door>),
    /// Somebody else's, which hands them over.
    Shared,
}

/// See the module.
#[derive(Debug)]
pub struct NetNode {
    allowed: AllowedNetworks,
    entrance: Entrance,
    lanes: BTreeMap<u32, LaneOrder>,
    guests: Arc<Guests>,
    bulk: Vec<BulkStream>,
    pings: Vec<PingStream>,
    pool: Arc<Vec<u8>>,
    /// What its clock is ahead of this machine's: for tests.
    ahead_ns: i64,
    stop: Arc<AtomicBool>,
}

/// In words, why not, and what to do.
type Refusal = (String, String);

fn refusal(problem: impl Into<String>, remedy: &str) -> Refusal {
    (problem.into(), remedy.to_owned())
}

impl NetNode {
    /// Which opens ports of its own. `stop`: set where it is to end what it does.
    pub fn new(allowed: AllowedNetworks, stop: Arc<AtomicBool>) -> Self {
        Self {
            allowed,
            entrance: Entrance::Own(None),
            lanes: BTreeMap::new(),
            guests: Arc::default(),
            bulk: Vec::new(),
            pings: Vec::new(),
            pool: Arc::default(),
            ahead_ns: 0,
            stop,
        }
    }

    /// Whose guests come in by a door that is open already.
    pub fn behind_a_door(self) -> Self {
        Self { entrance: Entrance::Shared, ..self }
    }

    /// Whose clock is ahead of the machine's.
    pub fn ahead_by(self, ahead_ns: i64) -> Self {
        Self { ahead_ns, ..self }
    }

    /// Who is waited for, of the stage that was opened last.
    pub fn guests(&self) -> Arc<Guests> {
        Arc::clone(&self.guests)
    }

    /// Does what is ordered.
    pub fn obey(&mut self, order: NetOrder) -> NetAnswer {
        let done = match order {
            NetOrder::Describe => {
                let now_ns = now_ns().saturating_add_signed(self.ahead_ns);
                Ok(NetAnswer::Described { host: Box::new(this_host()), now_ns })
            }
            NetOrder::Open { lanes } => self.open(lanes),
            NetOrder::Dial { lanes } => self.dial(&lanes),
            NetOrder::Run(order) => self.run(&order),
            NetOrder::Close => {
                self.close();
                Ok(NetAnswer::Well)
            }
        };
        done.unwrap_or_else(|(problem, remedy)| NetAnswer::Refused { problem, remedy })
    }

    fn close(&mut self) {
        self.bulk.clear();
        self.pings.clear();
        self.lanes.clear();
        self.guests = Arc::default();
        if let Entrance::Own(door) = &mut self.entrance {
            *door = None;
        }
    }

    fn open(&mut self, lanes: Vec<LaneOrder>) -> Result<NetAnswer, Refusal> {
        self.close();
        if self.allowed == AllowedNetworks::Nothing {
            return Err(refusal("network tests are not allowed on it", "Start it without --allow-net none"));
        }
        let wrong = lanes.iter().any(|l| l.streams == 0 || l.streams > MOST_STREAMS);
        if wrong || lanes.len() > MOST_LANES {
            return Err(refusal("it was given more streams than it takes", "Use fewer streams or hosts"));
        }
        let expected = |l: &&LaneOrder| !l.dials;
        let guests: BTreeMap<_, _> =
            lanes.iter().filter(expected).map(|l| (l.lane, (l.key.clone(), l.streams))).collect();
        let waits = !guests.is_empty();
        self.guests = Guests::of(guests);
        self.lanes = lanes.into_iter().map(|l| (l.lane, l)).collect();
        let mut port = None;
        if let Entrance::Own(door) = &mut self.entrance
            && waits
        {
            let opened = Door::open(Arc::clone(&self.guests), self.allowed.clone())
                .map_err(|e| refusal(format!("it cannot open a port: {e}"), "Look at its limits"))?;
            port = Some(opened.port);
            *door = Some(opened);
        }
        Ok(NetAnswer::Opened { port })
    }

    /// Within one time for all of it: whoever waits for these connections waits no longer, and who orders more of them, or addresses
    /// where nobody answers, keeps this host busy no longer, either.
    fn dial(&mut self, orders: &[DialOrder]) -> Result<NetAnswer, Refusal> {
        if orders.iter().any(|o| o.addresses.len() > MOST_ADDRESSES) {
            let most = format!("it was told of more than {MOST_ADDRESSES} addresses of one host");
            return Err(refusal(most, "Use the same version on all machines"));
        }
        let lanes: BTreeSet<u32> = orders.iter().map(|o| o.lane).collect();
        if lanes.len() < orders.len() {
            return Err(refusal(
                "it was told to dial one lane twice",
                "Use the same version on all machines",
            ));
        }
        let stop = Arc::clone(&self.stop);
        let dialling = Dialling { until: Instant::now() + COMING, stop: &stop };
        for order in orders {
            let lane = self.lanes.get(&order.lane).filter(|l| l.dials);
            let lane = lane.ok_or_else(|| refusal("it was told to dial a lane that it does not have", ""))?;
            let refused: Vec<String> =
                order.addresses.iter().filter_map(|a| self.allowed.refuses(*a)).collect();
            let mut allowed = order.addresses.clone();
            allowed.retain(|a| self.allowed.refuses(*a).is_none());
            if let (true, Some(why)) = (allowed.is_empty(), refused.first()) {
                return Err(refusal(why.clone(), "Name it with --allow-net if it is yours to load"));
            }
            let of_lane = (lane.lane, &lane.key, lane.streams);
            let came = dial(of_lane, &allowed, order.port, dialling).map_err(|why| {
                refusal(
                    format!("it cannot connect: {why}"),
                    "Look at firewalls between the hosts: a network test opens a port on each of them",
                )
            })?;
            self.take(came)?;
        }
        Ok(NetAnswer::Well)
    }

    /// Connections that are there.
    fn take(&mut self, came: Vec<Arrived>) -> Result<(), Refusal> {
        for (number, stream, socket) in came {
            let lane = &self.lanes[&number];
            let each = lane.most_bytes_per_s.map(|rate| (rate / u64::from(lane.streams)).max(1));
            let cannot = |e: std::io::Error| refusal(format!("it cannot use a connection: {e}"), "");
            match stream {
                Some(stream) => {
                    let stream = BulkStream::new(socket, number, stream, lane.sends, each).map_err(cannot)?;
                    self.bulk.push(stream);
                }
                None => self.pings.push(PingStream::new(socket, number, lane.sends).map_err(cannot)?),
            }
        }
        Ok(())
    }

    /// All that is waited for is there, and nobody else is let in.
    fn assemble(&mut self) -> Result<(), Refusal> {
        let came = self.guests.all(COMING, &self.stop);
        if let Entrance::Own(door) = &mut self.entrance {
            *door = None;
        }
        self.take(came.map_err(|why| refusal(why, "Look at firewalls between the hosts"))?)
    }

    fn run(&mut self, order: &RunOrder) -> Result<NetAnswer, Refusal> {
        self.assemble()?;
        let at_ns = order.at_ns.checked_add_signed(-self.ahead_ns).unwrap_or(0);
        let order = RunOrder { at_ns, ..*order };
        let now = now_ns();
        let length_ns = order.warmup_ns.saturating_add(order.measured_ns);
        if length_ns == 0 || length_ns > LONGEST_NS || at_ns > now + FURTHEST_NS {
            return Err(refusal(
                "the time that it was told is none that it keeps",
                "Look at the machines' clocks",
            ));
        }
        if self.pool.is_empty() {
            self.pool = Arc::new(pool());
        }
        Ok(NetAnswer::Ran(Box::new(self.carry_out(&order, now.saturating_sub(at_ns)))))
    }

    fn carry_out(&mut self, order: &RunOrder, late_ns: u64) -> NodeRecord {
        let mut record = NodeRecord { late_ns, ..NodeRecord::default() };
        let mut parts = divided(std::mem::take(&mut self.bulk));
        let mut pings = std::mem::take(&mut self.pings);
        let (stop, pool) = (&self.stop, &self.pool);
        let mut errors: Vec<String> = Vec::new();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for part in &mut parts {
                let body = move || drive(part, pool, order, stop).err().map(|e| e.to_string());
                match std::thread::Builder::new().name("net-data".into()).spawn_scoped(scope, body) {
                    Ok(thread) => threads.push(thread),
                    Err(e) => errors.push(e.to_string()),
                }
            }
            let pinging = &mut pings;
            let body = move || exchange(pinging, order, stop);
            let _ = std::thread::Builder::new().name("net-ping".into()).spawn_scoped(scope, body);
            wait_until(order.at_ns + order.warmup_ns, stop);
            record.before = HostCounters::now();
            wait_until(order.at_ns + order.warmup_ns + order.measured_ns, stop);
            record.after = HostCounters::now();
            errors.extend(threads.into_iter().filter_map(|t| t.join().ok().flatten()));
        });
        record.interrupted = stop.load(Ordering::Relaxed);
        // The sockets stay open until the stage is closed: an end before that would cut what the other side still sends.
        for mut stream in parts.into_iter().flatten() {
            let mut told = std::mem::take(&mut stream.record);
            if let (None, Some(why)) = (&told.ended, errors.first()) {
                told.ended = Some((0, why.clone()));
            }
            record.streams.push(told);
            self.bulk.push(stream);
        }
        record.pings = pings.into_iter().filter_map(PingStream::into_record).collect();
        record
    }
}

/// The streams over threads: as many as there are cores, each with streams of all lanes.
fn divided(streams: Vec<BulkStream>) -> Vec<Vec<BulkStream>> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let threads = cores.min(streams.len()).max(1);
    let mut out: Vec<Vec<BulkStream>> = (0..threads).map(|_| Vec::new()).collect();
    for (i, stream) in streams.into_iter().enumerate() {
        out[i % threads].push(stream);
    }
    out
}

/// Of an address as a socket tells it.
pub fn address(text: &str) -> Option<SocketAddr> {
    let at: SocketAddr = text.parse().ok()?;
    Some(SocketAddr::new(at.ip().to_canonical(), at.port()))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, TcpListener};

    use super::*;
    use crate::secret::NetKey;

    fn dialler(lanes: u32, stop: &Arc<AtomicBool>) -> NetNode {
        let mut node = NetNode::new(AllowedNetworks::Private, Arc::clone(stop));
        let lane = |lane| LaneOrder {
            lane,
            key: NetKey::random(),
            streams: 1,
            sends: true,
            dials: true,
            most_bytes_per_s: None,
        };
        let opened = node.obey(NetOrder::Open { lanes: (0..lanes).map(lane).collect() });
        assert_eq!(opened, NetAnswer::Opened { port: None });
        node
    }

    fn refused(node: &mut NetNode, lanes: Vec<DialOrder>) -> String {
        match node.obey(NetOrder::Dial { lanes }) {
            NetAnswer::Refused { problem, .. } => problem,
            other => panic!("{other:?}"),
        }
    }

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn who_was_told_to_stop_dials_nobody() {
        let listener = TcpListener::bind((HERE, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut node = dialler(1, &Arc::new(AtomicBool::new(true)));
        let why = refused(&mut node, vec![DialOrder { lane: 0, addresses: vec![HERE], port }]);
        assert!(why.contains("told to stop"), "{why}");
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }

    #[test]
    fn all_lanes_of_an_order_have_one_time_together() {
        let listener = TcpListener::bind((HERE, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = AtomicBool::new(false);
        let (key, dialling) = (NetKey::random(), Dialling { until: Instant::now(), stop: &stop });
        let why = dial((0, &key, 1), &[HERE; MOST_ADDRESSES], port, dialling).unwrap_err();
        assert_eq!(why, "not all connections were there in time");
    }

    /// Each address answers and says nothing: a stop ends it at the next one.
    #[test]
    fn a_stop_ends_what_is_dialled() {
        let listener = TcpListener::bind((HERE, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let mut node = dialler(1, &stop);
        let told = std::thread::spawn(move || {
            let (first, _) = listener.accept().unwrap();
            stop.store(true, Ordering::Release);
            drop(first);
            listener.set_nonblocking(true).unwrap();
            listener
        });
        let addresses = vec![HERE; MOST_ADDRESSES];
        let why = refused(&mut node, vec![DialOrder { lane: 0, addresses, port }]);
        assert!(why.ends_with("told to stop"), "{why}");
        let listener = told.join().unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }

    #[test]
    fn more_addresses_than_a_host_has_and_a_lane_twice_are_refused() {
        let mut node = dialler(1, &Arc::default());
        let order = |addresses| DialOrder { lane: 0, addresses, port: 9 };
        let why = refused(&mut node, vec![order(vec![HERE; MOST_ADDRESSES + 1])]);
        assert!(why.contains("more than 16 addresses"), "{why}");
        let why = refused(&mut node, vec![order(vec![HERE]), order(vec![HERE])]);
        assert!(why.contains("one lane twice"), "{why}");
    }
}
