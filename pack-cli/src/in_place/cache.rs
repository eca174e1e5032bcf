//! A cache with a limit in bytes, in which each value is made once, however many wait for it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// Values above the limit that are kept: a chunk of a delta, and the one of its base that is read by turns with it.
const LARGE: usize = 2;

/// Values by key, and what waits for those that were asked for. The least recently used are dropped first. A value above the limit is kept beside the
/// others, until [`LARGE`] more such values follow or nothing has been read for a while.
#[derive(Debug)]
pub(super) struct Cache<K, V, W> {
    state: Mutex<State<K, V, W>>,
    limit: u64,
}

#[derive(Debug)]
struct State<K, V, W> {
    slots: HashMap<K, Slot<V, W>>,
    /// The keys of ready values by their last use.
    order: BTreeMap<u64, K>,
    clock: u64,
    bytes: u64,
    /// The keys of the values that are above the limit.
    large: VecDeque<K>,
}

#[derive(Debug)]
enum Slot<V, W> {
    /// A value, its size, and its last use; `None` if the value is above the limit.
    Ready { value: Arc<V>, bytes: u64, used: Option<u64> },
    /// A value that was asked for: what waits for it, and whether a thread makes it.
    Coming(Vec<W>, bool),
}

/// What the cache knows of a key.
#[derive(Debug)]
pub(super) enum Lookup<V, W> {
    /// The value, and what need not wait for it.
    Ready(Arc<V>, W),
    /// Another one asked first.
    Coming,
    /// The caller has to have it made.
    Missing,
}

impl<K: Copy + Eq + Hash, V, W> Cache<K, V, W> {
    pub(super) fn new(limit: u64) -> Self {
        let state = State { slots: HashMap::new(), order: BTreeMap::new(), clock: 0, bytes: 0, large: VecDeque::new() };
        Self { state: Mutex::new(state), limit }
    }

    /// Looks up a key that is about to be used. If there is no value yet, `waiter` waits for it, and [`Self::finish`] returns it. After
    /// [`Lookup::Missing`], the caller must have [`Self::finish`] called.
    pub(super) fn find(&self, key: K, waiter: W) -> Lookup<V, W> {
        let mut state = self.state.lock();
        let State { slots, order, clock, .. } = &mut *state;
        match slots.get_mut(&key) {
            Some(Slot::Ready { value, used, .. }) => {
                if let Some(used) = used {
                    order.remove(used);
                    *clock += 1;
                    *used = *clock;
                    order.insert(*used, key);
                }
                Lookup::Ready(Arc::clone(value), waiter)
            }
            Some(Slot::Coming(waiting, _)) => {
                waiting.push(waiter);
                Lookup::Coming
            }
            None => {
                slots.insert(key, Slot::Coming(vec![waiter], false));
                Lookup::Missing
            }
        }
    }

    /// Drops the values above the limit.
    pub(super) fn drop_large(&self) {
        let mut state = self.state.lock();
        while let Some(key) = state.large.pop_front() {
            state.slots.remove(&key);
        }
    }

    /// Returns whether nobody has asked for a value yet, so that the caller has to have it made.
    pub(super) fn begin(&self, key: K) -> bool {
        let mut state = self.state.lock();
        let is_new = !state.slots.contains_key(&key);
        if is_new {
            state.slots.insert(key, Slot::Coming(Vec::new(), false));
        }
        is_new
    }

    /// Returns whether the caller is to make a value that was asked for: nobody else does. It must call [`Self::finish`] then.
    pub(super) fn claim(&self, key: K) -> bool {
        match self.state.lock().slots.get_mut(&key) {
            Some(Slot::Coming(_, is_claimed)) => !std::mem::replace(is_claimed, true),
            _ => false,
        }
    }

    /// Keeps a value with its size in bytes, and returns it with what waits for it. A value that could not be made is forgotten: the next lookup
    /// tries again.
    #[must_use]
    pub(super) fn finish(&self, key: K, made: Option<(V, u64)>) -> (Option<Arc<V>>, Vec<W>) {
        let made = made.map(|(value, bytes)| (Arc::new(value), bytes));
        let mut state = self.state.lock();
        let before = state.slots.remove(&key);
        if let Some((value, bytes)) = &made {
            state.keep(key, Arc::clone(value), *bytes, self.limit);
        }
        let waiting = match before {
            Some(Slot::Coming(waiting, _)) => waiting,
            _ => Vec::new(),
        };
        (made.map(|(value, _)| value), waiting)
    }
}

impl<K: Copy + Eq + Hash, V, W> State<K, V, W> {
    fn keep(&mut self, key: K, value: Arc<V>, bytes: u64, limit: u64) {
        if bytes > limit {
            if self.large.len() == LARGE
                && let Some(before) = self.large.pop_front()
            {
                self.slots.remove(&before);
            }
            self.large.push_back(key);
            self.slots.insert(key, Slot::Ready { value, bytes, used: None });
            return;
        }
        self.bytes += bytes;
        while self.bytes > limit {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            if let Some(Slot::Ready { bytes, .. }) = self.slots.remove(&oldest) {
                self.bytes -= bytes;
            }
        }
        self.clock += 1;
        self.order.insert(self.clock, key);
        self.slots.insert(key, Slot::Ready { value, bytes, used: Some(self.clock) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(cache: &Cache<u32, u32, &str>, key: u32) {
        assert!(cache.begin(key), "{key} is new");
        assert_eq!(cache.finish(key, Some((key, 10))), (Some(Arc::new(key)), Vec::new()));
    }

    fn has(cache: &Cache<u32, u32, &str>, key: u32) -> bool {
        cache.state.lock().slots.contains_key(&key)
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = Cache::new(30);
        (1..=3).for_each(|key| keep(&cache, key));
        assert!(matches!(cache.find(1, "reader"), Lookup::Ready(value, "reader") if *value == 1));
        keep(&cache, 4);
        assert_eq!([1, 2, 3, 4].map(|key| has(&cache, key)), [true, false, true, true]);
        assert_eq!(cache.state.lock().bytes, 30);
    }

    #[test]
    fn values_above_the_limit_stay_beside_the_others_until_more_of_them_follow() {
        let cache = Cache::new(25);
        let keep_large = |key| {
            assert!(cache.begin(key), "{key} is new");
            assert!(cache.finish(key, Some((key, 26))).1.is_empty());
        };
        keep(&cache, 1);
        keep_large(10);
        assert!(matches!(cache.find(10, "reader"), Lookup::Ready(value, _) if *value == 10));
        (2..=3).for_each(|key| keep(&cache, key));
        assert_eq!([1, 2, 3, 10].map(|key| has(&cache, key)), [false, true, true, true]);
        keep_large(11);
        assert_eq!([2, 3, 10, 11].map(|key| has(&cache, key)), [true; 4]);
        keep_large(12);
        assert_eq!([2, 3, 10, 11, 12].map(|key| has(&cache, key)), [true, true, false, true, true]);
        assert_eq!(cache.state.lock().bytes, 20);
        cache.drop_large();
        assert_eq!([2, 3, 11, 12].map(|key| has(&cache, key)), [true, true, false, false]);
    }

    #[test]
    fn all_who_wait_get_what_one_makes() {
        let cache = Cache::<u32, u32, &str>::new(30);
        assert!(matches!(cache.find(1, "first"), Lookup::Missing));
        assert!(matches!(cache.find(1, "second"), Lookup::Coming));
        assert!(!cache.begin(1));
        assert_eq!(cache.finish(1, Some((7, 10))), (Some(Arc::new(7)), vec!["first", "second"]));
    }

    #[test]
    fn only_one_claims_a_value() {
        let cache = Cache::<u32, u32, &str>::new(30);
        assert!(!cache.claim(1), "nobody asked for it");
        assert!(cache.begin(1));
        assert!(cache.claim(1));
        assert!(!cache.claim(1));
        assert!(matches!(cache.find(1, "reader"), Lookup::Coming));
        assert_eq!(cache.finish(1, Some((7, 10))).1, ["reader"]);
        assert!(!cache.claim(1), "it is there");
    }

    #[test]
    fn what_could_not_be_made_is_tried_again() {
        let cache = Cache::<u32, u32, &str>::new(30);
        assert!(matches!(cache.find(1, "first"), Lookup::Missing));
        assert_eq!(cache.finish(1, None), (None, vec!["first"]));
        assert!(matches!(cache.find(1, "second"), Lookup::Missing));
    }
}
