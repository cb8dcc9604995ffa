//! The protocol between drydock and a keeper, over one socket that is the keeper's standard input.
//!
//! To the keeper: first one byte, with the read end of a pipe attached if the agent's standard input stays
//! open. Then the confinement of the run and the agent's standard input, each as a length (8 bytes, little
//! endian) followed by that many bytes. After that, orders of one byte. The end of the stream is an order
//! too, the strongest one: *kill everything now*. The kernel sends this order when drydock dies, for any
//! reason.
//!
//! A socket is used instead of signals for three reasons. A parent-death signal is tied to the *thread* that
//! started the keeper, and threads of an async runtime come and go. A SIGTERM handler needs unsafe code. A
//! signal sent before the keeper is ready is lost, so a start would race with a death. The socket has none of
//! these problems, and because it is bidirectional, it also carries how the agent ended, which an exit code
//! cannot (128 + n may be a code or a signal). It is close-on-exec on both sides, so no other process of ours
//! can hold it open by accident.
//!
//! To drydock: reports, one JSON object per line.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use crate::sandbox::{Resource, Resources, SandboxPaths};

/// Order to terminate the agent's process group (SIGTERM). The end of the stream covers everything else.
pub(crate) const TERMINATE: u8 = b'T';

/// Maximum length of a part, so that a corrupt number is not used as a length.
const PART_MAX: u64 = 256 * 1024 * 1024;

/// The confinement under which a keeper starts the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    /// Where it may write and read; without it, everywhere.
    pub(crate) cage: Option<SandboxPaths>,
    pub(crate) resources: Resources,
}

/// A keeper's report: `Started` then `Ended`, or only a failure to start.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeeperReport {
    /// The agent runs.
    Started,
    /// The system did not start the agent; no process exists.
    Refused { errno: Option<i32>, text: String },
    /// The sandbox could not be created; no process exists.
    Unconfined { text: String },
    /// The agent ended and all its descendants have ended, except those listed, which could not be killed in
    /// time.
    Ended { exit: Exit, survivors: Vec<i32>, exceeded: Option<Resource> },
}

/// How the agent's own process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

/// Sends the first byte, with the pipe for the agent's standard input attached, if there is one.
pub(crate) fn send_input(to: impl AsFd, pipe: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    let pipes: Vec<BorrowedFd<'_>> = pipe.into_iter().collect();
    if !pipes.is_empty() && !attached.push(SendAncillaryMessage::ScmRights(&pipes)) {
        return Err(io::Error::other("no space to attach a pipe"));
    }
    sendmsg(to, &[IoSlice::new(&[0])], &mut attached, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives the first byte and the attached pipe.
pub(crate) fn receive_input(from: impl AsFd) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut attached, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let pipes = attached.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(pipes) => Some(pipes),
        _ => None,
    });
    Ok(pipes.flatten().next())
}

/// Returns the bytes of confinement and input.
pub(crate) fn opening(terms: &Confinement, input: &[u8]) -> io::Result<Vec<u8>> {
    let terms = serde_json::to_vec(terms)?;
    let mut bytes = Vec::with_capacity(16 + terms.len() + input.len());
    for part in [&terms, input] {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    Ok(bytes)
}

/// Reads the confinement and the agent's standard input.
pub(crate) fn read_opening(from: &mut impl Read) -> io::Result<(Confinement, Vec<u8>)> {
    let terms = read_part(from)?;
    Ok((serde_json::from_slice(&terms)?, read_part(from)?))
}

fn read_part(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > PART_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the start message is too long"));
    }
    let mut part = Vec::new();
    from.take(length).read_to_end(&mut part)?;
    if part.len() as u64 == length { Ok(part) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Writes one report as a line.
pub(crate) fn write_report(to: &mut impl Write, report: &KeeperReport) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    to.write_all(&line)
}
