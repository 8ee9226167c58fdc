//! Pixels as the elements of an array, and back.
//!
//! Floats are 0 for black to 1 for full brightness; integers take the samples of the file. An array
//! of two axes is grey, one of three axes has the channels last. Colours become grey by the
//! luminance of ITU-R BT.601.

use half::{bf16, f16};
use systola_interp::tensor::{Data, Tensor, data_bytes, n_elements};
use systola_ir::Scalar;

use super::picture::Picture;
use super::{Remarks, Wanted, has_room};

/// The elements for an input.
pub fn tensor(picture: &Picture, wanted: &Wanted<'_>) -> Result<(Tensor, Remarks), String> {
    let Picture {
        rows,
        columns,
        channels,
        most,
        ..
    } = *picture;
    let mut shape = vec![rows, columns];
    let taken = match wanted.extents {
        [_, _] => 1,
        [_, _, last] => {
            let taken = last.unwrap_or(channels);
            if !(1..=4).contains(&taken) {
                return Err(format!(
                    "a pixel has 1 to 4 channels, the input has {taken}"
                ));
            }
            shape.push(taken);
            taken
        }
        other => {
            return Err(format!(
                "a picture fills an input of two axes (rows, columns) or three (rows, columns, channels), this one has {}",
                other.len()
            ));
        }
    };
    let n = n_elements(&shape).ok_or("its shape is too large")?;
    let bytes = data_bytes(wanted.ty, n);
    if !has_room(bytes) {
        return Err(format!("there is no memory for its {bytes} bytes"));
    }
    let mut remarks = Remarks::new();
    let (has_colour, has_alpha) = (channels > 2, channels % 2 == 0);
    if has_colour && taken < 3 {
        remarks.push("colours taken as luminance, 0.299 R + 0.587 G + 0.114 B".to_string());
    }
    if has_alpha && taken % 2 == 1 {
        remarks.push("its alpha channel is left out".to_string());
    }
    // Samples that 8 bits do not hold are scaled to them.
    let is_scaled = wanted.ty == Scalar::U8 && most > 255;
    if is_scaled {
        remarks.push(format!("samples of 0..{most} scaled to 0..255"));
    }
    let scale = if is_scaled {
        255.0 / f64::from(most)
    } else {
        1.0
    };
    let sample = |position: usize| {
        let (pixel, channel) = (position / taken, position % taken);
        f64::from(most) * channel_of(picture, pixel, taken, channel) * scale
    };
    let data = elements(wanted.ty, n, most, sample)?;
    let tensor = Tensor::new(shape, data).map_err(|e| e.to_string())?;
    Ok((tensor, remarks))
}

/// A channel of a pixel, 0 to 1, as one of `taken` channels.
fn channel_of(picture: &Picture, pixel: usize, taken: usize, channel: usize) -> f64 {
    let most = f64::from(picture.most);
    let own = |n: usize| f64::from(picture.samples[pixel * picture.channels + n]);
    let is_alpha = taken.is_multiple_of(2) && channel + 1 == taken;
    match (picture.channels, taken) {
        (n @ (2 | 4), _) if is_alpha => own(n - 1) / most,
        (_, _) if is_alpha => 1.0,
        (3 | 4, 3 | 4) => own(channel) / most,
        (3 | 4, _) => (299.0 * own(0) + 587.0 * own(1) + 114.0 * own(2)) / (1000.0 * most),
        (_, _) => own(0) / most,
    }
}

/// Elements of a type; `sample` gives 0 to `most`.
fn elements(
    ty: Scalar,
    n: usize,
    most: u16,
    sample: impl Fn(usize) -> f64,
) -> Result<Data, String> {
    let unit = |at: usize| sample(at) / f64::from(most);
    macro_rules! integers {
        ($t:ty) => {{
            let narrow = |at: usize| {
                let x = sample(at).round() as u32;
                <$t>::try_from(x).map_err(|_| format!("a sample is {x}, which is no {ty}"))
            };
            let mut all: Vec<$t> = Vec::with_capacity(n);
            for at in 0..n {
                all.push(narrow(at)?);
            }
            Data::from(all)
        }};
    }
    Ok(match ty {
        Scalar::Bool => Data::Bool((0..n).map(|at| unit(at) >= 0.5).collect()),
        Scalar::I8 => integers!(i8),
        Scalar::I16 => integers!(i16),
        Scalar::I32 => integers!(i32),
        Scalar::I64 => integers!(i64),
        Scalar::U8 => integers!(u8),
        Scalar::U16 => integers!(u16),
        Scalar::U32 => integers!(u32),
        Scalar::U64 => integers!(u64),
        Scalar::F16 => Data::F16((0..n).map(|at| f16::from_f64(unit(at))).collect()),
        Scalar::BF16 => Data::BF16((0..n).map(|at| bf16::from_f64(unit(at))).collect()),
        Scalar::F32 => Data::F32((0..n).map(|at| unit(at) as f32).collect()),
        Scalar::F64 => Data::F64((0..n).map(unit).collect()),
    })
}

/// An array as a picture: rows, columns, and the number of channels.
pub fn layout(tensor: &Tensor) -> Result<(usize, usize, usize), String> {
    let extents: Vec<Option<usize>> = tensor.shape.iter().copied().map(Some).collect();
    channels(&extents)?;
    Ok(match tensor.shape[..] {
        [rows, columns, channels] => (rows, columns, channels),
        // Checked above: two axes.
        _ => (tensor.shape[0], tensor.shape[1], 1),
    })
}

/// The number of channels of an array as a picture, as far as the extents are known.
pub fn channels(extents: &[Option<usize>]) -> Result<Option<usize>, String> {
    let channels = match *extents {
        [_, _] => Some(1),
        [_, _, channels] => channels,
        _ => {
            return Err(format!(
                "a picture has two axes (rows, columns) or three (rows, columns, channels), the array has {}",
                extents.len()
            ));
        }
    };
    match channels {
        Some(n) if !(1..=4).contains(&n) => Err(format!(
            "a pixel has 1 to 4 channels, the last axis has {n}"
        )),
        _ if extents[..2].contains(&Some(0)) => Err("a picture has at least one pixel".to_string()),
        channels => Ok(channels),
    }
}

/// The picture of an output, and how it was scaled, if it was.
pub fn picture(tensor: &Tensor) -> Result<(Picture, Option<String>), String> {
    let (rows, columns, channels) = layout(tensor)?;
    let range = Range::of(&tensor.data);
    let ty = tensor.ty();
    let nominal = range.nominal(ty);
    let is_scaled = nominal.is_none();
    let shown = nominal.unwrap_or(range);
    let most = if ty == Scalar::U16 && !is_scaled {
        u16::MAX
    } else {
        255
    };
    let mut samples = Vec::with_capacity(tensor.data.len());
    each(&tensor.data, |x| {
        samples.push((shown.unit(x) * f64::from(most)).round() as u16);
    });
    let mut remark = is_scaled.then(|| {
        let (dark, bright) = match channels {
            1 | 2 => ("black", "white"),
            _ => ("dark", "bright"),
        };
        format!("{range} drawn as {dark} … {bright}")
    });
    if range.nans > 0 {
        let nans = format!("{} elements are not numbers and drawn black", range.nans);
        remark = Some(remark.map_or(nans.clone(), |remark| format!("{remark}; {nans}")));
    }
    let picture = Picture {
        rows,
        columns,
        channels,
        most,
        samples,
    };
    Ok((picture, remark))
}

/// The finite values of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub least: f64,
    pub greatest: f64,
    /// How many elements are NaN.
    pub nans: usize,
}

impl Range {
    /// Without finite values: 0 to 0.
    pub fn of(data: &Data) -> Range {
        let (mut least, mut greatest, mut nans) = (f64::INFINITY, f64::NEG_INFINITY, 0);
        each(data, |x| {
            if x.is_finite() {
                least = least.min(x);
                greatest = greatest.max(x);
            } else if x.is_nan() {
                nans += 1;
            }
        });
        if least > greatest {
            (least, greatest) = (0.0, 0.0);
        }
        Range {
            least,
            greatest,
            nans,
        }
    }

    pub fn and(self, other: Range) -> Range {
        Range {
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
            nans: self.nans + other.nans,
        }
    }

    /// The range from black to full brightness of a type, if these values lie in it and would not
    /// all be black.
    pub fn nominal(self, ty: Scalar) -> Option<Range> {
        let greatest = match ty {
            Scalar::U16 => 65535.0,
            Scalar::Bool => 1.0,
            ty if ty.is_float() => 1.0,
            _ => 255.0,
        };
        // Half a step of grey is lost in rounding anyway.
        let slack = if ty.is_float() { 0.5 / 255.0 } else { 0.0 };
        let fits = self.least >= -slack && self.greatest <= greatest + slack;
        // Integers that are 0 or 1 would all be black.
        let is_flag = greatest > 1.0 && self.least == 0.0 && self.greatest == 1.0;
        (fits && !is_flag).then_some(Range {
            least: 0.0,
            greatest,
            ..self
        })
    }

    /// Where a value lies, 0 to 1; NaN is 0.
    pub fn unit(&self, x: f64) -> f64 {
        // Halves, since a difference may overflow.
        let span = self.greatest / 2.0 - self.least / 2.0;
        let unit = match span > 0.0 {
            true => (x / 2.0 - self.least / 2.0) / span,
            false => 0.0,
        };
        if unit.is_nan() {
            0.0
        } else {
            unit.clamp(0.0, 1.0)
        }
    }
}

/// `-3.2 … 5.1`
impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} … {}", short(self.least), short(self.greatest))
    }
}

/// Four digits, without zeros at the end.
fn short(x: f64) -> String {
    if x == 0.0 || (1e-3..1e7).contains(&x.abs()) {
        let digits = (4 - x.abs().log10().floor().max(0.0) as i32 - 1).clamp(0, 6) as usize;
        let text = format!("{x:.digits$}");
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
            false => text,
        }
    } else {
        format!("{x:.3e}")
    }
}

/// Calls a function with every element.
pub fn each(data: &Data, mut f: impl FnMut(f64)) {
    match data {
        Data::Bool(v) => v.iter().for_each(|x| f(f64::from(u8::from(*x)))),
        Data::I8(v) => v.iter().for_each(|x| f(f64::from(*x))),
        Data::I16(v) => v.iter().for_each(|x| f(f64::from(*x))),
        Data::I32(v) => v.iter().for_each(|x| f(f64::from(*x))),
        Data::I64(v) => v.iter().for_each(|x| f(*x as f64)),
        Data::U8(v) => v.iter().for_each(|x| f(f64::from(*x))),
        Data::U16(v) => v.iter().for_each(|x| f(f64::from(*x))),
        Data::U32(v) => v.iter().for_each(|x| f(f64::from(*x))),
        Data::U64(v) => v.iter().for_each(|x| f(*x as f64)),
        Data::F16(v) => v.iter().for_each(|x| f(f64::from(*x))),
        Data::BF16(v) => v.iter().for_each(|x| f(f64::from(*x))),
        Data::F32(v) => v.iter().for_each(|x| f(f64::from(*x))),
        Data::F64(v) => v.iter().for_each(|x| f(*x)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(channels: usize, most: u16, samples: &[u16]) -> Picture {
        Picture {
            rows: 1,
            columns: samples.len() / channels,
            channels,
            most,
            samples: samples.to_vec(),
        }
    }

    fn check(
        picture: &Picture,
        ty: Scalar,
        extents: &[Option<usize>],
        data: Data,
        n_remarks: usize,
    ) {
        let (found, remarks) = tensor(picture, &Wanted { ty, extents }).unwrap();
        assert_eq!(found.data, data, "{remarks:?}");
        assert_eq!(remarks.len(), n_remarks, "{remarks:?}");
    }

    #[test]
    fn floats_are_0_to_1_and_integers_are_samples() {
        let grey = of(1, 255, &[0, 51, 255]);
        let two = [None, None];
        check(&grey, Scalar::F32, &two, Data::F32(vec![0.0, 0.2, 1.0]), 0);
        check(&grey, Scalar::U8, &two, Data::U8(vec![0, 51, 255]), 0);
        check(&grey, Scalar::I32, &two, Data::I32(vec![0, 51, 255]), 0);
        check(
            &grey,
            Scalar::Bool,
            &two,
            Data::Bool(vec![false, false, true]),
            0,
        );
        let deep = of(1, 65535, &[0, 257, 65535]);
        check(&deep, Scalar::U16, &two, Data::U16(vec![0, 257, 65535]), 0);
        check(&deep, Scalar::U8, &two, Data::U8(vec![0, 1, 255]), 1);
        check(
            &of(1, 9, &[9, 3, 0]),
            Scalar::U8,
            &two,
            Data::U8(vec![9, 3, 0]),
            0,
        );
        let wanted = |ty| Wanted { ty, extents: &two };
        assert!(tensor(&grey, &wanted(Scalar::I8)).is_err(), "255 is no i8");
        assert!(tensor(&deep, &wanted(Scalar::I16)).is_err());
    }

    #[test]
    fn channels_follow_the_declaration() {
        let colour = of(4, 255, &[255, 0, 0, 51]);
        let three = |n| [None, None, n];
        check(
            &colour,
            Scalar::U8,
            &three(None),
            Data::U8(vec![255, 0, 0, 51]),
            0,
        );
        check(
            &colour,
            Scalar::U8,
            &three(Some(3)),
            Data::U8(vec![255, 0, 0]),
            1,
        );
        check(
            &colour,
            Scalar::U8,
            &three(Some(2)),
            Data::U8(vec![76, 51]),
            1,
        );
        check(&colour, Scalar::U8, &three(Some(1)), Data::U8(vec![76]), 2);
        check(&colour, Scalar::U8, &[None, None], Data::U8(vec![76]), 2);
        let grey = of(1, 255, &[7]);
        check(
            &grey,
            Scalar::U8,
            &three(Some(4)),
            Data::U8(vec![7, 7, 7, 255]),
            0,
        );
        let (u8, extents) = (Scalar::U8, [None]);
        let line = tensor(
            &grey,
            &Wanted {
                ty: u8,
                extents: &extents,
            },
        );
        assert!(line.unwrap_err().contains("this one has 1"));
        let five = tensor(
            &grey,
            &Wanted {
                ty: u8,
                extents: &three(Some(5)),
            },
        );
        assert!(five.is_err());
    }

    #[test]
    fn an_array_without_memory_is_refused_before_it_is_allocated() {
        let huge = Picture {
            rows: 1 << 22,
            columns: 1 << 22,
            ..of(1, 255, &[])
        };
        let (ty, extents) = (Scalar::F64, &[None, None][..]);
        let why = tensor(&huge, &Wanted { ty, extents }).unwrap_err();
        assert_eq!(why, "there is no memory for its 140737488355328 bytes");
    }

    #[test]
    fn what_leaves_the_range_is_scaled_and_said() {
        let check = |data: Data, samples: &[u16], most: u16, remark: Option<&str>| {
            let tensor = Tensor::new(vec![1, data.len()], data).unwrap();
            let (found, said) = picture(&tensor).unwrap();
            assert_eq!((found.samples.as_slice(), found.most), (samples, most));
            assert_eq!(said.as_deref(), remark);
        };
        check(Data::F32(vec![0.0, 0.2, 1.001]), &[0, 51, 255], 255, None);
        let said = Some("-3.2 … 5.1 drawn as black … white");
        check(Data::F64(vec![-3.2, 5.1]), &[0, 255], 255, said);
        check(Data::U8(vec![0, 51, 255]), &[0, 51, 255], 255, None);
        check(Data::U16(vec![0, 257]), &[0, 257], 65535, None);
        check(Data::I32(vec![0, 200]), &[0, 200], 255, None);
        let said = Some("-100 … 300 drawn as black … white");
        check(Data::I32(vec![-100, 300, 100]), &[0, 255, 128], 255, said);
        let said = Some("0 … 1 drawn as black … white");
        check(Data::U8(vec![0, 1]), &[0, 255], 255, said);
        check(Data::Bool(vec![false, true]), &[0, 255], 255, None);
        let said = Some("1 elements are not numbers and drawn black");
        check(Data::F32(vec![f32::NAN, 1.0]), &[0, 255], 255, said);
        let said = Some("7 … 7 drawn as black … white");
        check(Data::F32(vec![7.0, f32::INFINITY]), &[0, 0], 255, said);
        let said = Some("-1.798e308 … 1.798e308 drawn as black … white");
        check(Data::F64(vec![f64::MIN, f64::MAX]), &[0, 255], 255, said);
        assert!(picture(&Tensor::vector(vec![1.0f32])).is_err());
        assert!(picture(&Tensor::new(vec![0, 3], Data::U8(vec![])).unwrap()).is_err());
    }
}
