/// A slab: values with stable indices, where free slots are reused.
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
    /// Adds a value, and returns its index.
    pub(crate) fn insert(&mut self, value: T) -> usize {
        let free = self.free.pop().and_then(|at| Some((at, self.entries.get_mut(at)?)));
        match free {
            Some((at, slot)) => {
                *slot = Some(value);
                at
            }
            None => {
                self.entries.push(Some(value));
                self.entries.len() - 1
            }
        }
    }

    /// Returns the value at an index.
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.entries.get_mut(at)?.as_mut()
    }

    /// Removes the value at an index, and frees the slot.
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
    fn slab_reuses_freed_slots() {
        let mut slots = Slab::default();
        let (first, second) = (slots.insert(1), slots.insert(2));
        assert_eq!(slots.remove(first), Some(1));
        assert_eq!((slots.remove(first), slots.get_mut(first)), (None, None));
        assert_eq!(slots.insert(3), first);
        assert_eq!(slots.iter_mut().map(|value| *value).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(slots.get_mut(second), Some(&mut 2));
        for _ in 0..1000 {
            let slot = slots.insert(4);
            slots.remove(slot);
        }
        assert_eq!(slots.entries.len(), 3);
    }
}
