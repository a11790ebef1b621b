/// Values that come and go, each at a place of its own: places that were left are used again.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds a value, and returns its place.
    pub(crate) fn insert(&mut self, value: T) -> usize {
        let free = self.free.pop().and_then(|at| Some((at, self.entries.get_mut(at)?)));
        match free {
            Some((at, place)) => {
                *place = Some(value);
                at
            }
            None => {
                self.entries.push(Some(value));
                self.entries.len() - 1
            }
        }
    }

    /// Returns the value at a place.
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.entries.get_mut(at)?.as_mut()
    }

    /// Takes the value at a place, which the next may have.
    pub(crate) fn remove(&mut self, at: usize) -> Option<T> {
        let value = self.entries.get_mut(at)?.take()?;
        self.free.push(at);
        Some(value)
    }

    /// Iterates over the values.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_was_left_is_used_again() {
        let mut slots = Slab::default();
        let (first, second) = (slots.insert(1), slots.insert(2));
        assert_eq!(slots.remove(first), Some(1));
        assert_eq!((slots.remove(first), slots.get_mut(first)), (None, None));
        assert_eq!(slots.insert(3), first);
        assert_eq!(slots.iter_mut().map(|value| *value).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(slots.get_mut(second), Some(&mut 2));
        for _ in 0..1000 {
            let place = slots.insert(4);
            slots.remove(place);
        }
        assert_eq!(slots.entries.len(), 3);
    }
}
