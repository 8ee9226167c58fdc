//! Random kernels whose warps communicate through shared and global memory, with or without
//! barriers and flags.

use systola_ir::kernel::{BufferKind, Host, Op, Program, Stmt};
use systola_ir::{
    BinOp, BufferId, Cond, DimId, Form, KernelId, Literal, Poly, RegId, Rel, Scalar, SharedId,
};

use super::{Builder, given, global, lin, shared};

const WARPS: i128 = 3;
const LANES: i128 = 4;
const BLOCKS: i128 = 3;

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: i128) -> i128 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1);
        i128::from(self.0 >> 33) % n
    }

    fn one_in(&mut self, n: i128) -> bool {
        self.below(n) == 0
    }
}

struct Elements {
    block: DimId,
    warp: DimId,
    lane: DimId,
    shared: SharedId,
    global: BufferId,
    flags: BufferId,
}

impl Elements {
    /// An element of the block's own part: mostly the lane's own, else one of another warp.
    fn within(&self, dice: &mut Dice) -> Form {
        let hop = if dice.one_in(3) { 1 } else { 0 };
        let warp = Form::from(self.warp).plus(hop).modulo(WARPS);
        let lane = match dice.below(4) {
            0 => lin(&[(-1, self.lane)], LANES - 1),
            _ => Form::from(self.lane),
        };
        let warp = warp.scale(&Poly::constant(LANES)).unwrap();
        warp.add(&lane)
    }

    /// An element of the own part of this block or, rarely, of the block before it.
    fn anywhere(&self, dice: &mut Dice) -> (Form, Cond) {
        let back = if dice.one_in(4) { 1 } else { 0 };
        let block = lin(&[(WARPS * LANES, self.block)], -back * WARPS * LANES);
        let exists = Cond::cmp(Rel::Ge, self.block, back);
        (block.add(&self.within(dice)), exists)
    }
}

/// A kernel of random steps, launched twice.
pub fn draw(seed: u64, with_flags: bool) -> Program {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
    let mut b = Builder::new("random", &[]);
    let all = Form::from(BLOCKS * WARPS * LANES);
    let y = b.output("y", Scalar::I32, std::slice::from_ref(&all));
    let global_buffer = b.buffer("g", Scalar::I32, BufferKind::Temporary, &[all]);
    let flags = b.buffer("ready", Scalar::I32, BufferKind::Flags, &[BLOCKS.into()]);
    b.begin("random", WARPS as u32, LANES as u32);
    let places = Elements {
        block: b.block("b", BLOCKS),
        warp: b.warp(),
        lane: b.lane(),
        shared: b.shared("s", Scalar::I32, &[WARPS * LANES]),
        global: global_buffer,
        flags,
    };
    let (block, warp, lane) = (places.block, places.warp, places.lane);
    let own = lin(&[(WARPS * LANES, block), (LANES, warp), (1, lane)], 0);
    let reg = b.reg("r", Scalar::I32);
    let position = b.op("p", Scalar::I64, Op::Index(own.clone()));
    let first = b.op("f", Scalar::I32, Op::Cast(position));
    b.stmt(Stmt::Set(reg, first));
    b.store(
        shared(places.shared, &[lin(&[(LANES, warp), (1, lane)], 0)]),
        first,
    );
    b.store(global(places.global, std::slice::from_ref(&own)), first);
    for _ in 0..2 + dice.below(5) {
        step(&mut b, &mut dice, &places, reg, with_flags);
    }
    let last = b.get(reg);
    b.store(global(y, &[own]), last);
    b.end();
    let kernel = KernelId(0);
    let args = vec![];
    b.program.body = vec![Host::Launch { kernel, args }; if with_flags { 1 } else { 2 }];
    b.program
}

fn step(b: &mut Builder, dice: &mut Dice, places: &Elements, reg: RegId, with_flags: bool) {
    match dice.below(if with_flags { 10 } else { 8 }) {
        0..3 => b.stmt(Stmt::Barrier),
        3 => {
            let value = b.get(reg);
            b.store(shared(places.shared, &[places.within(dice)]), value);
        }
        4 => {
            let (index, when) = places.anywhere(dice);
            let value = b.get(reg);
            b.store(given(global(places.global, &[index]), when), value);
        }
        n @ 5..8 => {
            let from = match n {
                5 | 6 => shared(places.shared, &[places.within(dice)]),
                _ => {
                    let (index, when) = places.anywhere(dice);
                    given(global(places.global, &[index]), when)
                }
            };
            let otherwise = Some(Literal::Int(5));
            let loaded = b.op("v", Scalar::I32, Op::Load { from, otherwise });
            let three = b.lit(Scalar::I32, Literal::Int(3));
            let old = b.get(reg);
            let old = b.binary(BinOp::Mul, old, three);
            let sum = b.binary(BinOp::Add, old, loaded);
            b.stmt(Stmt::Set(reg, sum));
        }
        8 => {
            let flag = global(places.flags, &[places.block.into()]);
            b.stmt(Stmt::Signal { flag });
        }
        _ => {
            let flag = global(places.flags, &[lin(&[(1, places.block)], -1)]);
            let flag = given(flag, Cond::cmp(Rel::Ge, places.block, 1));
            let at_least = Form::from(dice.below(3));
            b.stmt(Stmt::Await { flag, at_least });
        }
    }
}
