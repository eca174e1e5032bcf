//! Runs a function on many items, on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::Error;
use crate::threads::panic_guard::OnPanic;
use crate::threads::team::team;

/// Runs `work` on each item, on `jobs` threads, in no particular order.
///
/// # Errors
/// Returns the first error of `work`; items not begun by then are skipped.
pub fn for_each<T: Sync>(jobs: usize, items: &[T], work: impl Fn(&T) -> Result<(), Error> + Sync) -> Result<(), Error> {
    for_each_with(jobs, items, || (), |(), item| work(item))
}

/// As [`for_each`], but each thread has its own state, made by `start`.
pub fn for_each_with<T: Sync, S>(
    jobs: usize,
    items: &[T],
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    let run = || {
        let _guard = OnPanic(|| next.store(items.len(), Ordering::Relaxed));
        let mut own = start();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = work(&mut own, item) {
                failed.lock().get_or_insert(error);
                next.store(items.len(), Ordering::Relaxed);
            }
        }
    };
    team(jobs.min(items.len()), run);
    failed.into_inner().map_or(Ok(()), Err)
}

/// As [`for_each`], but returns the results of `work`, in the order of the items.
pub fn map<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    map_with(jobs, items, || (), |(), item| work(item))
}

/// As [`map`], but each thread has its own state, made by `start`.
pub fn map_with<T: Sync, S, R: Send>(
    jobs: usize,
    items: &[T],
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let numbered: Vec<(usize, &T)> = items.iter().enumerate().collect();
    for_each_with(jobs, &numbered, start, |own, (number, item)| {
        let result = work(own, item)?;
        done.lock().push((*number, result));
        Ok(())
    })?;
    let mut done = done.into_inner();
    done.sort_unstable_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::panic_guard::assert_panics;

    #[test]
    fn results_have_the_order_of_the_items() {
        let items: Vec<u32> = (0..1000).collect();
        assert_eq!(map(4, &items, |item| Ok(item * 2)).expect("it works"), (0..2000).step_by(2).collect::<Vec<_>>());
        assert!(map(4, &items, |item| if *item == 3 { Err(Error::Cancelled) } else { Ok(()) }).is_err());
    }

    #[test]
    fn a_panic_ends_the_work_of_all() {
        assert_panics(|| {
            let items: Vec<u32> = (0..1000).collect();
            let work = |item: &u32| if *item == 3 { panic!("as the test wants") } else { Ok(()) };
            let _ = for_each(2, &items, work);
        });
    }
}
