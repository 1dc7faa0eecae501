//! The pages of a segment in the order of their last accesses.

/// Blocks hold so many pages at most, and two neighbours more than a quarter of that.
const BLOCK: usize = 512;

/// How far from its distance a page is looked for.
const NEAR_LEAST: usize = 4;
const NEAR_MOST: usize = 64;

/// Pages in the order of their last accesses, in blocks: the last page of the last block is the most recent. Taking one
/// moves a block's pages at most.
#[derive(Debug, Default)]
pub(super) struct Stack {
    blocks: Vec<Vec<u32>>,
    len: usize,
    /// Where a page was taken last: the one accessed next after it now stands there.
    taken: (usize, usize),
}

impl Stack {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Makes a page that is not there the most recent.
    pub(super) fn push(&mut self, page: u32) {
        self.len += 1;
        match self.blocks.last_mut() {
            Some(block) if block.len() < BLOCK => block.push(page),
            _ => {
                let mut block = Vec::with_capacity(BLOCK);
                block.push(page);
                self.blocks.push(block);
            }
        }
    }

    /// Makes a page the most recent one, and gives it: the nearest to a distance from the most recent one that is wanted
    /// and lies within `near` of it, or else that at the distance. None if there is no such distance.
    pub(super) fn touch_near(
        &mut self,
        distance: usize,
        near: usize,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let mut left = distance;
        for number in (0..self.blocks.len()).rev() {
            let block = &self.blocks[number];
            if left < block.len() {
                let at = block.len() - 1 - left;
                let found = (0..=near.clamp(NEAR_LEAST, NEAR_MOST)).find_map(|away| {
                    let sides = [at.checked_sub(away), Some(at + away)];
                    sides
                        .into_iter()
                        .flatten()
                        .find(|side| block.get(*side).is_some_and(|page| is_wanted(*page)))
                });
                return Some(self.touch_in(number, found.unwrap_or(at)));
            }
            left -= block.len();
        }
        None
    }

    /// Makes a page that is there the most recent.
    pub(super) fn touch(&mut self, page: u32) {
        let (number, at) = self.taken;
        let expected = self.blocks.get(number).and_then(|block| block.get(at));
        let found = if expected == Some(&page) { Some((number, at)) } else { self.find(page) };
        if let Some((number, at)) = found {
            self.touch_in(number, at);
        }
    }

    fn find(&self, page: u32) -> Option<(usize, usize)> {
        let mut blocks = self.blocks.iter().enumerate();
        blocks.find_map(|(number, block)| Some((number, block.iter().position(|found| *found == page)?)))
    }

    fn touch_in(&mut self, number: usize, at: usize) -> u32 {
        let page = self.blocks[number].remove(at);
        self.len -= 1;
        self.taken = (number, at);
        if self.blocks[number].is_empty() {
            self.blocks.remove(number);
            self.taken.1 = 0;
        } else if number > 0 && self.blocks[number - 1].len() + self.blocks[number].len() <= BLOCK / 4 {
            let pages = self.blocks.remove(number);
            self.taken = (number - 1, self.blocks[number - 1].len() + at);
            self.blocks[number - 1].extend(pages);
        } else if at == self.blocks[number].len() {
            self.taken = (number + 1, 0);
        }
        self.push(page);
        page
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_list_with_the_most_recent_at_the_end(
            pages in 1..3000_u32,
            touches in prop::collection::vec((any::<bool>(), any::<u32>()), 0..3000),
        ) {
            let mut plain: Vec<u32> = (0..pages).collect();
            let mut stack = Stack::default();
            for page in &plain {
                stack.push(*page);
            }
            for (by_distance, number) in touches {
                let number = number % pages;
                if by_distance {
                    let page = plain.remove((pages - 1 - number) as usize);
                    plain.push(page);
                    prop_assert_eq!(stack.touch_near(number as usize, 0, |_| true), Some(page));
                } else {
                    plain.retain(|page| *page != number);
                    plain.push(number);
                    stack.touch(number);
                }
            }
            prop_assert_eq!(stack.len(), pages as usize);
            prop_assert_eq!(stack.touch_near(pages as usize, 0, |_| true), None);
            prop_assert!(stack.blocks.windows(2).all(|pair| !pair[0].is_empty()));
            prop_assert_eq!(stack.blocks.concat(), plain);
        }
    }

    #[test]
    fn the_nearest_page_that_is_wanted_is_taken() {
        let mut stack = Stack::default();
        for page in 0..100 {
            stack.push(page);
        }
        assert_eq!(stack.touch_near(50, 8, |page| page == 45 || page == 55), Some(45));
        // None is near: the page at the distance, now that 45 is the most recent.
        assert_eq!(stack.touch_near(50, 8, |page| page == 70), Some(50));
        assert_eq!(stack.touch_near(100, 8, |_| true), None);
    }

    #[test]
    fn a_loop_finds_each_page_where_the_one_before_was() {
        let mut stack = Stack::default();
        for page in 0..2000 {
            stack.push(page);
        }
        assert_eq!(stack.touch_near(1999, 0, |_| true), Some(0));
        for page in (1..2000).chain(0..2000) {
            let (number, at) = stack.taken;
            assert_eq!(stack.blocks[number][at], page);
            stack.touch(page);
        }
    }
}
