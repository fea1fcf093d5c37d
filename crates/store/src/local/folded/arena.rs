//! Names, one behind the other, each found by its place. What is taken out leaves a gap that is not
//! filled: an arena that is mostly gaps is thrown away with its index.

/// Bytes of a piece of the arena, of which only the first grows with what is in it.
const PIECE: usize = 64 << 10;
/// Names begin at multiples of this.
const ALIGN: usize = 4;
/// Bits of a place: the arena holds 256 MiB.
pub(super) const PLACE_BITS: u32 = 26;
/// Pieces of an arena.
const PIECES_MAX: usize = ALIGN << PLACE_BITS >> PIECE.trailing_zeros();
/// The longest name.
const NAME_MAX: usize = u8::MAX as usize;

const _: () = assert!(PIECE > 2 * NAME_MAX && PIECE.is_multiple_of(ALIGN));

/// Where a name is: at most [`PLACE_BITS`] bits.
pub(super) type Place = u32;

/// The names of a directory.
#[derive(Debug, Default)]
pub(super) struct Arena {
    pieces: Vec<Vec<u8>>,
    /// Bytes of names that are there, and of those that were taken out.
    live: usize,
    gaps: usize,
}

fn room_for(name: &[u8]) -> usize {
    (1 + name.len()).next_multiple_of(ALIGN)
}

impl Arena {
    /// Puts a name in. `None` if the arena is full.
    pub(super) fn put(&mut self, name: &[u8]) -> Option<Place> {
        let length = u8::try_from(name.len()).ok()?;
        let room = room_for(name);
        if self.pieces.last().is_none_or(|last| last.len() + room > PIECE) {
            if self.pieces.len() >= PIECES_MAX {
                return None;
            }
            let capacity = if self.pieces.is_empty() { 0 } else { PIECE };
            self.pieces.push(Vec::with_capacity(capacity));
        }
        let number = self.pieces.len() - 1;
        let piece = self.pieces.last_mut()?;
        let at = number * PIECE + piece.len();
        piece.push(length);
        piece.extend_from_slice(name);
        piece.resize(at % PIECE + room, 0);
        self.live += room;
        u32::try_from(at / ALIGN).ok()
    }

    /// The name at a place where one was put.
    pub(super) fn get(&self, place: Place) -> &[u8] {
        let at = place as usize * ALIGN;
        let piece = self.pieces.get(at / PIECE).map_or(&[][..], Vec::as_slice);
        let from = piece.get(at % PIECE..).unwrap_or(&[]);
        from.split_first()
            .and_then(|(length, rest)| rest.get(..usize::from(*length)))
            .unwrap_or(&[])
    }

    /// Takes a name out that is at a place.
    pub(super) fn take_out(&mut self, place: Place) {
        let room = room_for(self.get(place));
        self.live -= room;
        self.gaps += room;
    }

    /// Is more than half of it gaps?
    pub(super) fn is_wasteful(&self) -> bool {
        self.gaps > self.live + PIECE
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let first = self.pieces.first().map_or(0, Vec::capacity);
        first + self.pieces.len().saturating_sub(1) * PIECE + self.pieces.capacity() * 24
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_lengths_are_found_where_they_were_put() {
        let mut arena = Arena::default();
        let name = |number: usize| vec![number.to_le_bytes()[0]; 1 + number % NAME_MAX];
        let places: Vec<_> = (0..5000).map(|number| arena.put(&name(number)).unwrap()).collect();
        for (number, place) in places.iter().enumerate() {
            assert_eq!(arena.get(*place), name(number));
        }
        assert!(arena.pieces.len() > 5 && arena.pieces.iter().all(|piece| piece.len() <= PIECE));
        assert!(!arena.is_wasteful());
        places.iter().for_each(|place| arena.take_out(*place));
        assert!(arena.is_wasteful() && arena.live == 0);
    }

    #[test]
    fn a_small_arena_takes_little_and_a_full_one_no_more() {
        let mut arena = Arena::default();
        arena.put(b"name").unwrap();
        assert!(arena.bytes() < 200);
        let full = Arena { pieces: vec![Vec::new(); PIECES_MAX], ..Arena::default() };
        let mut full = Arena { live: 0, ..full };
        full.pieces.last_mut().unwrap().resize(PIECE - 8, 0);
        assert_eq!(full.put(b"seven.."), Some((1 << PLACE_BITS) - 2), "the last place there is");
        assert_eq!(full.put(b""), None);
    }
}
