//! Frames as a moving picture: GIF, or an animated PNG.
//!
//! One number for each pixel is drawn through a map of colours, whose ends are the least and the
//! greatest number of all frames. Pixels of several channels, which only PNG has, keep their
//! colours where these lie between black and full brightness, as in a single picture.

use gif::{Encoder, Frame, Repeat};
use systola_interp::tensor::Tensor;
use systola_ir::Scalar;

use super::colours::palette;
use super::picture::PictureError;
use super::pixels::{Range, each, layout};
use super::{DataFile, Format, png as still};

/// Hundredths of a second.
const DELAY: u16 = 5;

/// Why a GIF cannot show pixels of several channels.
pub const ONE_CHANNEL: &str = "a GIF has one palette for all; use .png for colours";

/// The frames of one array.
pub struct Animation {
    rows: usize,
    columns: usize,
    channels: usize,
    ty: Scalar,
    /// Of all frames.
    range: Range,
    frames: Vec<Vec<f32>>,
}

impl Animation {
    /// The bytes that frames of an array take.
    pub fn bytes(n_frames: usize, tensor: &Tensor) -> u64 {
        let n = tensor.data.len() as u64;
        n.saturating_mul(4).saturating_mul(n_frames as u64)
    }

    /// With the first frame.
    pub fn new(tensor: &Tensor, file: &DataFile) -> Result<Animation, String> {
        let (rows, columns, channels) = layout(tensor)?;
        if file.format == Some(Format::Gif) {
            if channels > 1 {
                return Err(ONE_CHANNEL.to_string());
            }
            if rows.max(columns) > usize::from(u16::MAX) {
                return Err(format!("a GIF has no side of {} pixels", rows.max(columns)));
            }
        }
        let mut animation = Animation {
            rows,
            columns,
            channels,
            ty: tensor.ty(),
            range: Range::of(&tensor.data),
            frames: Vec::new(),
        };
        animation.push(tensor);
        Ok(animation)
    }

    pub fn push(&mut self, tensor: &Tensor) {
        self.range = self.range.and(Range::of(&tensor.data));
        let mut frame = Vec::with_capacity(tensor.data.len());
        each(&tensor.data, |x| frame.push(x as f32));
        self.frames.push(frame);
    }

    /// The range that is drawn as dark to bright.
    fn shown(&self) -> Range {
        match self.channels {
            1 => self.range,
            _ => self.range.nominal(self.ty).unwrap_or(self.range),
        }
    }

    /// `51 pictures of 256 x 256; 0 … 1 drawn as dark … bright`
    pub fn remark(&self) -> String {
        let Animation { rows, columns, .. } = self;
        let (n, range) = (self.frames.len(), self.shown());
        let nans = match range.nans {
            0 => String::new(),
            n => format!("; {n} elements are not numbers and drawn dark"),
        };
        format!("{n} pictures of {columns} x {rows}; {range} drawn as dark … bright{nans}")
    }

    pub fn encode(&self, file: &DataFile) -> Result<Vec<u8>, PictureError> {
        match file.format {
            Some(Format::Gif) => self.gif().map_err(PictureError::damaged),
            _ => self.png(),
        }
    }

    fn samples<'a>(&'a self, frame: &'a [f32]) -> impl Iterator<Item = u8> + 'a {
        let shown = self.shown();
        let sample = move |x: &f32| (shown.unit(f64::from(*x)) * 255.0).round() as u8;
        frame.iter().map(sample)
    }

    fn gif(&self) -> Result<Vec<u8>, gif::EncodingError> {
        let mut bytes = Vec::new();
        let palette = palette().concat();
        let (width, height) = (self.columns as u16, self.rows as u16);
        let mut encoder = Encoder::new(&mut bytes, width, height, &palette)?;
        encoder.set_repeat(Repeat::Infinite)?;
        for frame in &self.frames {
            encoder.write_frame(&Frame {
                delay: DELAY,
                width,
                height,
                buffer: self.samples(frame).collect(),
                ..Frame::default()
            })?;
        }
        drop(encoder);
        Ok(bytes)
    }

    fn png(&self) -> Result<Vec<u8>, PictureError> {
        let (width, height) = (still::side(self.columns)?, still::side(self.rows)?);
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_depth(png::BitDepth::Eight);
        match self.channels {
            1 => {
                encoder.set_color(png::ColorType::Indexed);
                encoder.set_palette(palette().concat());
            }
            channels => encoder.set_color(still::colour(channels)),
        }
        encoder
            .set_animated(self.frames.len() as u32, 0)
            .map_err(still::unwritten)?;
        encoder
            .set_frame_delay(DELAY, 100)
            .map_err(still::unwritten)?;
        let mut writer = encoder.write_header().map_err(still::unwritten)?;
        for frame in &self.frames {
            let samples: Vec<u8> = self.samples(frame).collect();
            writer
                .write_image_data(&samples)
                .map_err(still::unwritten)?;
        }
        writer.finish().map_err(still::unwritten)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::parse;
    use systola_interp::tensor::Data;

    #[test]
    fn colours_and_alpha_are_kept() {
        let check = |channels: usize, data: Data, samples: &[u8]| {
            let tensor = Tensor::new(vec![1, data.len() / channels, channels], data).unwrap();
            let animation = Animation::new(&tensor, &parse("u=u.png").unwrap()).unwrap();
            let found: Vec<u8> = animation.samples(&animation.frames[0]).collect();
            assert_eq!(found, samples, "{}", animation.remark());
        };
        check(3, Data::U8(vec![10, 20, 30]), &[10, 20, 30]);
        check(4, Data::F32(vec![0.2, 0.4, 0.2, 0.8]), &[51, 102, 51, 204]);
        check(2, Data::U16(vec![257, 514]), &[1, 2]);
        // What leaves the range is scaled, and so is one channel.
        check(3, Data::F32(vec![0.0, 1.0, 2.0]), &[0, 128, 255]);
        check(1, Data::U8(vec![10, 20]), &[0, 255]);
    }
}
