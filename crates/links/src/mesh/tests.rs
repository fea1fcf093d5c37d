//! Gateways in one process that exchange words over loopback.

use super::*;
use crate::KeyFile;
use weir_cluster::{Asked, Body, HelperWord, MachineId, Message, Version};
use weir_core::Mono;

/// Gateways 1 and 2 of one cluster.
struct Two {
    meshes: [Mesh; 2],
    heard: [mpsc::Receiver<Heard>; 2],
    addresses: BTreeMap<GatewayId, SocketAddr>,
}

fn life(gateway: u16) -> Life {
    Life { gateway: GatewayId(gateway), number: 1 }
}

fn server(gateway: u16) -> Name {
    Name { role: Role::Server, gateway: GatewayId(gateway) }
}

fn ask(from: Life, asked: u64) -> Word {
    let body = Body::Ask { asked: Mono(asked), in_vain: false };
    Word::Message(Message { version: Version::CURRENT, from, body })
}

fn identity(key: &KeyFile, gateway: u16) -> Identity {
    Identity::new(key, life(gateway)).unwrap()
}

fn key() -> KeyFile {
    let base = tempfile::tempdir().unwrap();
    KeyFile::create(&base.path().join("key")).unwrap()
}

async fn two() -> Two {
    let (key, mut addresses) = (key(), BTreeMap::new());
    let mut made = Vec::new();
    for gateway in [1, 2] {
        let (sender, receiver) = mpsc::channel(64);
        let mut mesh = Mesh::new(identity(&key, gateway), sender);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        addresses.insert(GatewayId(gateway), listener.local_addr().unwrap());
        mesh.listen(listener);
        made.push((mesh, receiver));
    }
    for (mesh, _) in &mut made {
        mesh.follow(&addresses);
    }
    let [(first, one), (second, two)] = <[_; 2]>::try_from(made).unwrap();
    Two { meshes: [first, second], heard: [one, two], addresses }
}

#[tokio::test]
async fn words_arrive_in_both_directions_with_the_proved_life() {
    let mut two = two().await;
    for asked in 0..5 {
        two.meshes[0].send(GatewayId(2), ask(life(1), asked));
        two.meshes[1].send(GatewayId(1), ask(life(2), asked));
    }
    for asked in 0..5 {
        assert_eq!(two.heard[1].recv().await.unwrap(), (life(1), ask(life(1), asked)));
        assert_eq!(two.heard[0].recv().await.unwrap(), (life(2), ask(life(2), asked)));
    }
}

#[tokio::test]
async fn a_word_in_the_name_of_another_life_closes_the_link() {
    let mut two = two().await;
    two.meshes[0].send(GatewayId(2), ask(life(7), 1));
    // Sent over a new link.
    sleep(Duration::from_millis(50)).await;
    two.meshes[0].send(GatewayId(2), ask(life(1), 2));
    let mut asked = 2;
    loop {
        tokio::select! {
            heard = two.heard[1].recv() => {
                let (from, word) = heard.unwrap();
                assert_eq!(from, life(1));
                assert_ne!(word, ask(life(7), 1));
                break;
            }
            // The word before may have been lost with the link.
            () = sleep(Duration::from_millis(200)) => {
                asked += 1;
                two.meshes[0].send(GatewayId(2), ask(life(1), asked));
            }
        }
    }
}

#[test]
fn nobody_speaks_for_another_gateway_or_in_another_role() {
    let (version, at, machine) = (Version::CURRENT, Mono(1), MachineId(1));
    let helper = |life| {
        let (runs, answers) = (false, None);
        Word::Helper(HelperWord { version, machine, life, runs, answers })
    };
    // A promise, a question to a helper and the word of one, in the name of a gateway; the roles of
    // sender and receiver for whom each of them is.
    let words = |gateway| {
        let by = life(gateway);
        [
            (ask(by, 1), (Role::Server, Role::Server)),
            (Word::Question { version, by, at }, (Role::Server, Role::Helper)),
            (helper(by), (Role::Helper, Role::Server)),
        ]
    };
    for role in [Role::Server, Role::Helper] {
        for own in [Role::Server, Role::Helper] {
            let peer = Peer { role, life: life(1) };
            for (word, roles) in words(1) {
                assert_eq!(is_its(own, peer, &word), roles == (role, own), "{word:?} {roles:?}");
            }
            assert!(!words(2).iter().any(|(word, _)| is_its(own, peer, word)));
        }
    }
    let earlier = Life { number: 7, ..life(1) };
    let peer = Peer { role: Role::Server, life: life(1) };
    assert!(!is_its(Role::Server, peer, &ask(earlier, 1)));
    let peer = Peer { role: Role::Helper, life: Life { number: 0, ..life(1) } };
    assert!(is_its(Role::Server, peer, &helper(earlier)), "a helper outlives lives");
}

/// The mesh of the helper on the machine of gateway 2, which says that its first life has ended.
async fn helper(key: &KeyFile) -> (Mesh, SocketAddr) {
    let reply = |_, word| {
        let Word::Question { version, by, at } = word else { return None };
        let answers = Some(Asked { by, at, noted: false });
        let (life, machine) = (life(2), MachineId(1));
        Some(Word::Helper(HelperWord { version, machine, life, runs: false, answers }))
    };
    let own = Identity::of_helper(key, GatewayId(2)).unwrap();
    let mut mesh = Mesh::answering(own, Arc::new(reply));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    mesh.listen(listener);
    (mesh, address)
}

#[tokio::test]
async fn a_helper_answers_questions_and_speaks_by_itself() {
    let key = key();
    let (mut helper, address) = helper(&key).await;
    let (sender, mut heard) = mpsc::channel(64);
    let mut mesh = Mesh::new(identity(&key, 1), sender);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    helper.follow(&[(GatewayId(1), listener.local_addr().unwrap())].into());
    mesh.listen(listener);
    mesh.follow_helpers(&[(GatewayId(2), address)].into());
    let version = Version::CURRENT;
    for at in [Mono(5), Mono(6)] {
        mesh.send(GatewayId(2), Word::Question { version, by: life(1), at });
        let (from, Word::Helper(word)) = heard.recv().await.unwrap() else { panic!() };
        assert_eq!(from, Life { number: 0, ..life(2) });
        assert_eq!(word.answers, Some(Asked { by: life(1), at, noted: false }));
    }
    let (runs, answers) = (false, None);
    let word = HelperWord { version, machine: MachineId(1), life: life(2), runs, answers };
    helper.send(GatewayId(1), Word::Helper(word));
    let (from, told) = heard.recv().await.unwrap();
    assert_eq!((from, told), (Life { number: 0, ..life(2) }, Word::Helper(word)));
}

#[tokio::test]
async fn a_peer_that_takes_no_answers_does_not_delay_others() {
    let key = key();
    let (_helper, address) = helper(&key).await;
    let to = Name { role: Role::Helper, gateway: GatewayId(2) };
    let question =
        |gateway| Word::Question { version: Version::CURRENT, by: life(gateway), at: Mono(1) };
    let mut slow = Link::dial(&identity(&key, 3), to, address).await.unwrap();
    // It takes none of the answers, so that the helper takes none of its questions at last.
    let many = question(3).encode();
    let asking = tokio::spawn(async move { while slow.outgoing.send(&many).await.is_ok() {} });
    for _ in 0..20 {
        let mut link = Link::dial(&identity(&key, 1), to, address).await.unwrap();
        link.outgoing.send(&question(1).encode()).await.unwrap();
        let answer = link.incoming.receive().await.unwrap().unwrap();
        assert!(matches!(Word::decode(&answer), Ok(Word::Helper(_))));
    }
    asking.abort();
}

#[tokio::test]
async fn a_gateway_that_comes_back_elsewhere_is_reached_again() {
    let mut two = two().await;
    two.meshes[0].send(GatewayId(2), ask(life(1), 1));
    assert!(two.heard[1].recv().await.is_some());
    // Another life of the second gateway, at another address.
    let (sender, mut receiver) = mpsc::channel(64);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    two.addresses.insert(GatewayId(2), listener.local_addr().unwrap());
    let own = (*two.meshes[1].own).clone();
    let mut again = Mesh::new(own, sender);
    again.listen(listener);
    two.meshes[0].follow(&two.addresses);
    two.meshes[0].send(GatewayId(2), ask(life(1), 2));
    assert_eq!(receiver.recv().await.unwrap().1, ask(life(1), 2));
    // And after that it is known nowhere.
    two.addresses.remove(&GatewayId(2));
    two.meshes[0].follow(&two.addresses);
    assert!(two.meshes[0].others.is_empty());
    two.meshes[0].send(GatewayId(2), ask(life(1), 3));
}

#[tokio::test]
async fn of_words_that_cannot_be_sent_the_oldest_are_dropped() {
    let (sender, _receiver) = mpsc::channel(1);
    let mut mesh = Mesh::new(identity(&key(), 1), sender);
    // Nobody listens there.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    mesh.follow(&[(GatewayId(2), address)].into());
    for asked in 0..100 {
        mesh.send(GatewayId(2), ask(life(1), asked));
    }
    let queue = &mesh.others[&server(2)].queue;
    assert_eq!(queue.words().len(), QUEUED_MAX);
    assert_eq!(queue.words().back(), Some(&ask(life(1), 99)));
}

#[tokio::test]
async fn words_that_nobody_reads_are_dropped_and_do_not_block_the_link() {
    let mut two = two().await;
    for asked in 0..500 {
        two.meshes[0].send(GatewayId(2), ask(life(1), asked));
        // The queue is not to be the one that drops.
        while two.meshes[0].others[&server(2)].queue.words().len() >= QUEUED_MAX {
            sleep(Duration::from_millis(1)).await;
        }
    }
    while !two.meshes[0].others[&server(2)].queue.words().is_empty() {
        sleep(Duration::from_millis(1)).await;
    }
    assert!(two.heard[1].recv().await.is_some());
    let mut count = 1;
    while two.heard[1].try_recv().is_ok() {
        count += 1;
    }
    assert!(count < 500, "all words were kept");
}

#[tokio::test]
async fn many_connections_of_strangers_keep_no_gateway_out() {
    let mut two = two().await;
    let address = two.addresses[&GatewayId(2)];
    let mut strangers = Vec::new();
    for _ in 0..300 {
        if let Ok(tcp) = TcpStream::connect(address).await {
            strangers.push(tcp);
        }
    }
    // Strangers of the same address as the gateway's leave it a place when their time is over.
    two.meshes[0].send(GatewayId(2), ask(life(1), 1));
    assert!(two.heard[1].recv().await.is_some());
    drop(strangers);
}

/// A gateway that takes questions, and the way to it.
async fn asked(key: &KeyFile, gateway: u16) -> (Mesh, mpsc::Receiver<Stream>, SocketAddr) {
    let (heard, _) = mpsc::channel(64);
    let mut mesh = Mesh::new(identity(key, gateway), heard);
    let asked = mesh.asked();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    mesh.listen(listener);
    (mesh, asked, address)
}

#[tokio::test]
async fn a_question_is_a_connection_of_its_own() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let key = key();
    let (_mesh, mut asked, address) = asked(&key, 2).await;
    let own = identity(&key, 1);
    // Words and questions come to the same address.
    let mut words = Link::dial(&own, server(2), address).await.unwrap();
    words.outgoing.send(&ask(life(1), 1).encode()).await.unwrap();
    let mut question = Link::ask(&own, GatewayId(2), address).await.unwrap();
    question.write_all(b"question").await.unwrap();
    question.flush().await.unwrap();
    let mut taken = asked.recv().await.unwrap();
    let mut bytes = [0; 8];
    taken.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"question");
    taken.write_all(b"answer").await.unwrap();
    taken.shutdown().await.unwrap();
    let mut answer = Vec::new();
    question.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"answer");
    words.outgoing.send(&ask(life(1), 2).encode()).await.unwrap();
}

#[tokio::test]
async fn questions_that_nobody_takes_up_are_closed() {
    use tokio::io::AsyncReadExt;

    let key = key();
    let (_mesh, asked, address) = asked(&key, 2).await;
    let own = identity(&key, 1);
    let mut open = Vec::new();
    for _ in 0..QUESTIONS_MAX {
        open.push(Link::ask(&own, GatewayId(2), address).await.unwrap());
    }
    let mut surplus = Link::ask(&own, GatewayId(2), address).await.unwrap();
    assert!(matches!(surplus.read(&mut [0; 1]).await, Ok(0) | Err(_)), "it is closed");
    drop(asked);
    // Words are no questions.
    Link::dial(&own, server(2), address).await.unwrap();
}

#[tokio::test]
async fn only_gateways_of_the_cluster_ask_and_older_ones_say_nothing() {
    let key = key();
    let (_mesh, mut taken, address) = asked(&key, 2).await;
    let stranger = identity(&self::key(), 1);
    let refused = Link::ask(&stranger, GatewayId(2), address).await.unwrap_err();
    assert!(matches!(refused, LinkError::OtherCluster), "{refused}");
    let helper = Identity::of_helper(&key, GatewayId(1)).unwrap();
    let refused = Link::ask(&helper, GatewayId(2), address).await.unwrap_err();
    assert!(
        matches!(&refused, LinkError::Refused(why) if why == "helpers ask nothing"),
        "{refused}"
    );
    let other = Link::ask(&identity(&key, 1), GatewayId(3), address).await.unwrap_err();
    assert!(matches!(other, LinkError::OtherName(name) if name == server(3)), "{other}");
    assert!(taken.try_recv().is_err());
    // One of an older version does not name questions in the handshake.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut older = identity(&key, 2);
    older.forget_questions();
    let (heard, _) = mpsc::channel(64);
    let mut mesh = Mesh::new(older, heard);
    mesh.listen(listener);
    let refused = Link::ask(&identity(&key, 1), GatewayId(2), address).await.unwrap_err();
    assert!(matches!(refused, LinkError::NoQuestions), "{refused}");
}
