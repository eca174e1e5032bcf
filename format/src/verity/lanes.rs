//! SHA-256 of four blocks at once (FIPS 180-4, section 6.2), in the four lanes of WebAssembly's vectors: WebAssembly has no instructions for
//! SHA-256, and the crate sha2 hashes one message at a time.

use alloc::vec::Vec;
use core::arch::wasm32::{
    i8x16_shuffle, u32x4, u32x4_add, u32x4_extract_lane, u32x4_shl, u32x4_shr, u32x4_splat, v128, v128_and, v128_or,
    v128_xor,
};

use super::{BLOCK, ZEROS};
use crate::num::wide;

/// The number of messages that are hashed in parallel.
const LANES: usize = 4;

/// Bytes of each message that one compression takes.
const PART: usize = 64;

const INITIAL: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

#[rustfmt::skip]
const ROUNDS: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// Returns the hashes of messages of `len` bytes, a multiple of [`PART`] and at most [`BLOCK`]. Shorter messages are padded with zeros.
pub(super) fn hash_each(messages: &[&[u8]], len: usize) -> Vec<[u8; 32]> {
    let mut hashes = Vec::with_capacity(messages.len() + LANES);
    let mut filled = [[0; BLOCK]; LANES];
    for group in messages.chunks(LANES) {
        let mut four = [&ZEROS[..len]; LANES];
        for ((message, filled), place) in group.iter().zip(&mut filled).zip(&mut four) {
            *place = message;
            if message.len() < len {
                let (head, rest) = filled[..len].split_at_mut(message.len());
                head.copy_from_slice(message);
                rest.fill(0);
                *place = &filled[..len];
            }
        }
        hashes.extend(hash_four(four));
    }
    hashes.truncate(messages.len());
    hashes
}

/// Returns the hash of each of four messages of the same length, a multiple of [`PART`].
fn hash_four(messages: [&[u8]; LANES]) -> [[u8; 32]; LANES] {
    let mut state = INITIAL.map(|word| u32x4_splat(word));
    let [one, two, three, four] = messages.map(|message| message.as_chunks::<PART>().0);
    for (((one, two), three), four) in one.iter().zip(two).zip(three).zip(four) {
        compress(&mut state, [one, two, three, four]);
    }
    // The padding after a message: a one bit, zeros, and the message's length in bits.
    let mut end = [0; PART];
    end[0] = 0x80;
    end[PART - 8..].copy_from_slice(&(8 * wide(messages[0].len())).to_be_bytes());
    compress(&mut state, [&end; LANES]);
    let mut hashes = [[0; 32]; LANES];
    for (word, lanes) in state.into_iter().enumerate() {
        let lanes = [
            u32x4_extract_lane::<0>(lanes),
            u32x4_extract_lane::<1>(lanes),
            u32x4_extract_lane::<2>(lanes),
            u32x4_extract_lane::<3>(lanes),
        ];
        for (hash, lane) in hashes.iter_mut().zip(lanes) {
            hash.as_chunks_mut::<4>().0[word] = lane.to_be_bytes();
        }
    }
    hashes
}

fn compress(state: &mut [v128; 8], parts: [&[u8; PART]; LANES]) {
    // The last sixteen words of the message's schedule.
    let mut words = [u32x4_splat(0); 16];
    for (at, words) in words.iter_mut().enumerate() {
        *words = word(parts, at);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (pass, constants) in ROUNDS.as_chunks::<16>().0.iter().enumerate() {
        if pass > 0 {
            schedule(&mut words);
        }
        for (constants, words) in constants.as_chunks::<8>().0.iter().zip(words.as_chunks::<8>().0) {
            // Eight rounds, after which the variables have rotated back to their names.
            round(a, b, c, &mut d, e, f, g, &mut h, constants[0], words[0]);
            round(h, a, b, &mut c, d, e, f, &mut g, constants[1], words[1]);
            round(g, h, a, &mut b, c, d, e, &mut f, constants[2], words[2]);
            round(f, g, h, &mut a, b, c, d, &mut e, constants[3], words[3]);
            round(e, f, g, &mut h, a, b, c, &mut d, constants[4], words[4]);
            round(d, e, f, &mut g, h, a, b, &mut c, constants[5], words[5]);
            round(c, d, e, &mut f, g, h, a, &mut b, constants[6], words[6]);
            round(b, c, d, &mut e, f, g, h, &mut a, constants[7], words[7]);
        }
    }
    let new = [a, b, c, d, e, f, g, h];
    for at in 0..new.len() {
        state[at] = u32x4_add(state[at], new[at]);
    }
}

/// Returns the word at this position of each of the four messages.
#[inline(always)]
fn word(parts: [&[u8; PART]; LANES], at: usize) -> v128 {
    let word = |part: &[u8; PART]| u32::from_le_bytes(part.as_chunks::<4>().0[at]);
    swap_bytes(u32x4(word(parts[0]), word(parts[1]), word(parts[2]), word(parts[3])))
}

/// Computes the next sixteen words of the schedule. Written out, since loops are not unrolled when the module is optimised for size.
fn schedule(words: &mut [v128; 16]) {
    extend::<0>(words);
    extend::<1>(words);
    extend::<2>(words);
    extend::<3>(words);
    extend::<4>(words);
    extend::<5>(words);
    extend::<6>(words);
    extend::<7>(words);
    extend::<8>(words);
    extend::<9>(words);
    extend::<10>(words);
    extend::<11>(words);
    extend::<12>(words);
    extend::<13>(words);
    extend::<14>(words);
    extend::<15>(words);
}

#[inline(always)]
fn extend<const AT: usize>(words: &mut [v128; 16]) {
    let (early, late) = (words[(AT + 1) % 16], words[(AT + 14) % 16]);
    let early = xor(rotate::<7>(early), rotate::<18>(early), u32x4_shr(early, 3));
    let late = xor(rotate::<17>(late), rotate::<19>(late), u32x4_shr(late, 10));
    words[AT] = u32x4_add(u32x4_add(words[AT], early), u32x4_add(words[(AT + 9) % 16], late));
}

/// Computes one round, which changes two of the eight variables. Callers rename the others.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the standard's eight letters")]
fn round(a: v128, b: v128, c: v128, d: &mut v128, e: v128, f: v128, g: v128, h: &mut v128, constant: u32, word: v128) {
    let chosen = v128_xor(g, v128_and(e, v128_xor(f, g)));
    let mixed = xor(rotate::<6>(e), rotate::<11>(e), rotate::<25>(e));
    let one = u32x4_add(u32x4_add(u32x4_add(*h, mixed), chosen), u32x4_add(u32x4_splat(constant), word));
    let majority = v128_or(v128_and(a, b), v128_and(c, v128_or(a, b)));
    let two = u32x4_add(xor(rotate::<2>(a), rotate::<13>(a), rotate::<22>(a)), majority);
    *d = u32x4_add(*d, one);
    *h = u32x4_add(one, two);
}

#[inline(always)]
fn swap_bytes(words: v128) -> v128 {
    i8x16_shuffle::<3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12>(words, words)
}

#[inline(always)]
fn xor(one: v128, two: v128, three: v128) -> v128 {
    v128_xor(v128_xor(one, two), three)
}

#[inline(always)]
fn rotate<const BITS: u32>(word: v128) -> v128 {
    v128_or(u32x4_shr(word, BITS), u32x4_shl(word, 32 - BITS))
}
