//! Slots that several threads work on, each slot in order and by one thread at a time.

use std::collections::BTreeMap;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::threads::panic_guard::OnPanic;

/// Items by their keys. A thread that comes before its turn waits.
#[derive(Debug)]
pub struct OrderedSlots<K, T> {
    state: Mutex<State<K, T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<K, T> {
    /// `None` while a thread has the item.
    things: BTreeMap<K, Option<T>>,
    is_over: bool,
}

impl<K: Copy + Ord, T> OrderedSlots<K, T> {
    /// Wraps items by their keys.
    #[must_use]
    pub fn new(things: BTreeMap<K, T>) -> Self {
        let things = things.into_iter().map(|(key, thing)| (key, Some(thing))).collect();
        Self { state: Mutex::new(State { things, is_over: false }), changed: Condvar::new() }
    }

    /// Passes the item of that key, if any, to `act` once `is_turn` accepts it. Does nothing after an abort.
    pub fn act(&self, key: K, is_turn: impl Fn(&T) -> bool, act: impl FnOnce(&mut T)) {
        let Some(mut thing) = self.wait(key, is_turn) else { return };
        let _guard = OnPanic(|| self.give_up());
        act(&mut thing);
        self.lock().things.insert(key, Some(thing));
        self.changed.notify_all();
    }

    fn wait(&self, key: K, is_turn: impl Fn(&T) -> bool) -> Option<T> {
        let mut state = self.lock();
        while !state.is_over {
            let slot = state.things.get_mut(&key)?;
            if slot.as_ref().is_some_and(&is_turn) {
                return slot.take();
            }
            self.changed.wait(&mut state);
        }
        None
    }

    /// Announces that some turn will not come: no thread waits any more.
    pub fn give_up(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Returns the items, once no thread uses them.
    pub fn into_things(self) -> impl Iterator<Item = T> {
        let state = self.state.into_inner();
        state.things.into_values().flatten()
    }

    fn lock(&self) -> MutexGuard<'_, State<K, T>> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::panic_guard::assert_panics;

    #[test]
    fn turns_come_in_order_whoever_comes_first() {
        let lists = OrderedSlots::new(BTreeMap::from([(7, Vec::new())]));
        std::thread::scope(|scope| {
            for turn in (0..20).rev() {
                let lists = &lists;
                scope.spawn(move || lists.act(7, |list| list.len() == turn, |list| list.push(turn)));
            }
        });
        assert_eq!(lists.into_things().collect::<Vec<_>>(), [(0..20).collect::<Vec<_>>()]);
    }

    #[test]
    fn nobody_waits_for_a_thread_that_panicked() {
        assert_panics(|| {
            let numbers = OrderedSlots::new(BTreeMap::from([(1, 0)]));
            std::thread::scope(|scope| {
                scope.spawn(|| numbers.act(1, |number| *number == 1, |number| *number += 1));
                numbers.act(1, |number| *number == 0, |_| panic!("as the test wants"));
            });
        });
    }

    #[test]
    fn nobody_waits_for_a_turn_that_does_not_come() {
        let numbers = OrderedSlots::new(BTreeMap::from([(1, 0)]));
        numbers.act(2, |_| false, |number| *number += 1);
        std::thread::scope(|scope| {
            scope.spawn(|| numbers.act(1, |number| *number == 1, |number| *number += 1));
            numbers.give_up();
        });
        assert_eq!(numbers.into_things().collect::<Vec<_>>(), [0]);
    }
}
