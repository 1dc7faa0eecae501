//! Numbers of children by weight.

use crate::random::Draws;

/// How many parents make a block.
pub(crate) const BLOCK: u64 = 4096;

/// Numbers of children in fixed proportions. Parents are taken in blocks. Each block has all the numbers in the same
/// order, which looks random and begins anywhere, so each block has equally many children, and the parent of a child
/// is found by one search in the block.
#[derive(Debug)]
pub(crate) struct Shares {
    /// How many children the first parents of the order have together: none, one, two … parents.
    sums: Box<[u64]>,
}

impl Shares {
    /// Numbers of children with their weights; `draws` say in which order. Otherwise says what is wrong.
    pub(crate) fn new(weights: &[(u32, f64)], mut draws: Draws) -> Result<Self, String> {
        let mut order = Vec::with_capacity(BLOCK as usize);
        for ((children, _), quota) in weights.iter().zip(quotas(weights)?) {
            order.extend(std::iter::repeat_n(*children, quota));
        }
        for place in (1..order.len()).rev() {
            order.swap(place, draws.below(place as u64 + 1) as usize);
        }
        let mut sum = 0;
        let sums = order.into_iter().map(|children| {
            sum += u64::from(children);
            sum
        });
        Ok(Self { sums: std::iter::once(0).chain(sums).collect() })
    }

    /// How many children a block has.
    pub(crate) fn total(&self) -> u64 {
        self.sums[BLOCK as usize]
    }

    /// How many children the first parents of a block have that begins at a place of the order.
    #[inline]
    pub(crate) fn of_first(&self, parents: u64, start: u64) -> u64 {
        let (start, end) = (start as usize, (start + parents) as usize);
        match self.sums.get(end) {
            Some(sum) => sum - self.sums[start],
            None => self.total() - self.sums[start] + self.sums[end - BLOCK as usize],
        }
    }

    /// The parent of a child, both counted within a block that begins at a place of the order.
    #[inline]
    pub(crate) fn owner(&self, child: u64, start: u64) -> u64 {
        let sum = self.sums[start as usize] + child;
        let (sum, turn) = if sum < self.total() { (sum, 0) } else { (sum - self.total(), BLOCK) };
        let place = self.sums.partition_point(|reached| *reached <= sum) as u64 - 1;
        turn + place - start
    }
}

/// How many parents of a block have each number of children: as many as its weight says, rounded, and one at least.
fn quotas(weights: &[(u32, f64)]) -> Result<Vec<usize>, String> {
    if let Some((children, bad)) = weights.iter().find(|(_, weight)| !weight.is_finite() || *weight < 0.0) {
        return Err(format!("the weight of {children} children is {bad}; it must be a number from 0 up"));
    }
    let positive = weights.iter().filter(|(_, weight)| *weight > 0.0).count();
    if positive == 0 {
        return Err("no number of children has a weight above 0".to_owned());
    }
    if positive > BLOCK as usize {
        return Err(format!("{positive} numbers of children have a weight; {BLOCK} are the most"));
    }
    let whole: f64 = weights.iter().map(|(_, weight)| weight).sum();
    if !whole.is_finite() {
        return Err("the weights are too large together".to_owned());
    }
    let (mut reached, mut given) = (0.0, 0);
    let mut quotas: Vec<usize> = Vec::with_capacity(weights.len());
    for (_, weight) in weights {
        reached += weight;
        let until = (reached / whole * BLOCK as f64).round() as usize;
        quotas.push(until - given);
        given = until;
    }
    for index in 0..quotas.len() {
        if weights[index].1 > 0.0 && quotas[index] == 0 {
            quotas[index] = 1;
            let greatest = (0..quotas.len()).max_by_key(|other| quotas[*other]).unwrap_or(index);
            quotas[greatest] -= 1;
        }
    }
    Ok(quotas)
}
