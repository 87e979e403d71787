//! Convolutions on the CPU: the pixels under each window side by side (im2col), then matrix products.
//!
//! A few lines of positions are gathered at a time, so that they are still in the cache when they are
//! multiplied. Work is divided into blocks of images on the threads of the current rayon pool. The blocks
//! depend on the shapes alone, and sums over them are taken in their order: the number of threads changes no
//! result.

use std::ops::Range;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::TensorData;
use rayon::prelude::*;

use super::super::cpu::whole;
use super::super::matrix::{Matrix, Output, product};
use super::{Convolutions, Window};

type Primitive = FloatTensor<Flex>;

/// Gathered numbers that are multiplied at once: half of a typical second-level cache.
const TILE: usize = 1 << 17;

/// Blocks of images that threads may work on at the same time.
const BLOCKS: usize = 8;

/// The sizes of one convolution.
#[derive(Clone, Copy, Debug)]
struct Plan {
    images: usize,
    /// Rows, columns and channels of an image.
    image: [usize; 3],
    /// Rows and columns of positions, and output channels.
    grid: [usize; 3],
    window: Window,
}

impl Plan {
    /// The numbers under a window.
    fn depth(&self) -> usize {
        self.window.kernel[0] * self.window.kernel[1] * self.image[2]
    }

    fn image_size(&self) -> usize {
        self.image.iter().product()
    }

    fn grid_size(&self) -> usize {
        self.grid.iter().product()
    }

    fn images_per_block(&self) -> usize {
        self.images.div_ceil(BLOCKS).max(1)
    }

    /// Whether the gathered numbers are the image itself.
    fn is_pointwise(&self) -> bool {
        self.window == Window::square(1, 1, 0)
    }

    /// The lines of positions of a block of images, a tile at a time.
    fn tiles(&self, images: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let lines = images * self.grid[0];
        let step = (TILE / (self.grid[1] * self.depth())).max(1);
        (0..lines).step_by(step).map(move |start| start..lines.min(start + step))
    }

    /// For each position of these lines and each row of its window: where its pixels are in the block, and
    /// where in the gathered line, as far as they are within the image.
    #[inline]
    fn for_each_run(&self, lines: Range<usize>, mut run: impl FnMut(Range<usize>, usize)) {
        let ([rows, columns, channels], Window { kernel, stride, .. }) = (self.image, self.window);
        let (above, left) = (self.window.rows[0], self.window.columns[0]);
        let depth = self.depth();
        for (i, line) in lines.enumerate() {
            let (image, y) = (line / self.grid[0], line % self.grid[0]);
            for x in 0..self.grid[1] {
                // The columns of the window that are within the image.
                let first = left.saturating_sub(x * stride).min(kernel[1]);
                let last = (columns + left).saturating_sub(x * stride).min(kernel[1]);
                if first >= last {
                    continue;
                }
                let column = x * stride + first - left;
                let gathered = (i * self.grid[1] + x) * depth;
                for ky in 0..kernel[0] {
                    let row = y * stride + ky;
                    if row < above || row >= rows + above {
                        continue;
                    }
                    let start = ((image * rows + row - above) * columns + column) * channels;
                    let length = (last - first) * channels;
                    run(start..start + length, gathered + (ky * kernel[1] + first) * channels);
                }
            }
        }
    }

    /// The pixels under the windows of these lines of positions; zeros beyond the image.
    fn gather(&self, lines: Range<usize>, images: &[f32], gathered: &mut Vec<f32>) {
        gathered.clear();
        gathered.resize(lines.len() * self.grid[1] * self.depth(), 0.0);
        self.for_each_run(lines, |pixels, place| {
            gathered[place..][..pixels.len()].copy_from_slice(&images[pixels]);
        });
    }

    /// The transpose of [`gather`](Self::gather): adds to the pixels.
    fn scatter(&self, lines: Range<usize>, gathered: &[f32], images: &mut [f32]) {
        self.for_each_run(lines, |pixels, place| {
            let values = &gathered[place..][..pixels.len()];
            for (pixel, value) in images[pixels].iter_mut().zip(values) {
                *pixel += value;
            }
        });
    }

    /// The part of a block's grids that lines of positions are.
    fn of_grid(&self, lines: &Range<usize>) -> Range<usize> {
        let line = self.grid[1] * self.grid[2];
        lines.start * line..lines.end * line
    }

    fn convolve(&self, images: &[f32], weight: &[f32], grids: &mut [f32]) {
        // The product copies a factor whose neighbours in a column are not neighbours in memory, again for
        // each tile: outputs are made innermost once.
        let weight = swap_inner(weight, 1, self.grid[2]);
        let weight = Matrix::new(&weight, self.depth(), self.grid[2]);
        let per_block = self.images_per_block();
        let blocks = images.par_chunks(per_block * self.image_size());
        blocks.zip(grids.par_chunks_mut(per_block * self.grid_size())).for_each(
            |(images, grids)| {
                let mut gathered = Vec::new();
                for lines in self.tiles(images.len() / self.image_size()) {
                    let positions = lines.len() * self.grid[1];
                    let output = &mut grids[self.of_grid(&lines)];
                    let pixels = self.under_windows(lines, images, &mut gathered);
                    let pixels = Matrix::new(pixels, positions, self.depth());
                    product(pixels, weight, output, Output::Overwrite);
                }
            },
        );
    }

    /// [`gather`](Self::gather), if there is anything to gather.
    fn under_windows<'a>(
        &self,
        lines: Range<usize>,
        images: &'a [f32],
        gathered: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        if self.is_pointwise() {
            let line = self.image[1] * self.image[2];
            return &images[lines.start * line..lines.end * line];
        }
        self.gather(lines, images, gathered);
        gathered
    }

    /// `images` are zeros before.
    fn convolve_transposed(&self, grids: &[f32], weight: &[f32], images: &mut [f32]) {
        let weight = Matrix::new(weight, self.grid[2], self.depth());
        let per_block = self.images_per_block();
        let blocks = grids.par_chunks(per_block * self.grid_size());
        blocks.zip(images.par_chunks_mut(per_block * self.image_size())).for_each(
            |(grids, images)| {
                let mut spread = Vec::new();
                for lines in self.tiles(images.len() / self.image_size()) {
                    let positions = lines.len() * self.grid[1];
                    let grids = Matrix::new(&grids[self.of_grid(&lines)], positions, self.grid[2]);
                    if self.is_pointwise() {
                        let line = self.image[1] * self.image[2];
                        let images = &mut images[lines.start * line..lines.end * line];
                        product(grids, weight, images, Output::Overwrite);
                        continue;
                    }
                    spread.resize(positions * self.depth(), 0.0);
                    product(grids, weight, &mut spread, Output::Overwrite);
                    self.scatter(lines, &spread, images);
                }
            },
        );
    }

    fn convolve_weight(&self, images: &[f32], grids: &[f32]) -> Vec<f32> {
        let per_block = self.images_per_block();
        let blocks = images.par_chunks(per_block * self.image_size());
        let sums: Vec<Vec<f32>> = blocks
            .zip(grids.par_chunks(per_block * self.grid_size()))
            .map(|(images, grids)| {
                let mut sum = vec![0.0; self.grid[2] * self.depth()];
                let mut gathered = Vec::new();
                for lines in self.tiles(images.len() / self.image_size()) {
                    let positions = lines.len() * self.grid[1];
                    let grids = Matrix::new(&grids[self.of_grid(&lines)], positions, self.grid[2]);
                    let pixels = self.under_windows(lines, images, &mut gathered);
                    let pixels = Matrix::new(pixels, positions, self.depth());
                    product(grids.transposed(), pixels, &mut sum, Output::Add);
                }
                sum
            })
            .collect();
        let mut sums = sums.into_iter();
        let mut total = sums.next().unwrap_or_default();
        for sum in sums {
            for (total, x) in total.iter_mut().zip(sum) {
                *total += x;
            }
        }
        total
    }
}

/// Swaps the two inner dimensions of outputs x inner x outer: between PyTorch's weights, whose windows are
/// innermost, and gathered pixels, whose channels are.
fn swap_inner(weight: &[f32], outputs: usize, rows: usize) -> Vec<f32> {
    let size = weight.len() / outputs.max(1);
    let columns = size / rows.max(1);
    let mut swapped = Vec::with_capacity(weight.len());
    for weight in weight.chunks_exact(size.max(1)) {
        for column in 0..columns {
            swapped.extend((0..rows).map(|row| weight[row * columns + column]));
        }
    }
    swapped
}

/// A weight as outputs x window x inputs.
fn packed(weight: Primitive) -> Vec<f32> {
    let shape = weight.shape();
    swap_inner(whole(weight).storage(), shape[0], shape[1])
}

fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> Primitive {
    Primitive::from_data(TensorData::new(values, shape))
}

impl Convolutions for Flex {
    fn convolve(images: Primitive, weight: Primitive, window: Window) -> Primitive {
        let (shape, outputs) = (images.shape(), weight.shape()[0]);
        let image = [shape[1], shape[2], shape[3]];
        let [rows, columns] = window.positions([shape[1], shape[2]]);
        let plan = Plan { images: shape[0], image, grid: [rows, columns, outputs], window };
        let mut grids = vec![0.0; plan.images * plan.grid_size()];
        plan.convolve(whole(images).storage(), &packed(weight), &mut grids);
        tensor(grids, [plan.images, rows, columns, outputs])
    }

    fn convolve_transposed(
        grids: Primitive,
        weight: Primitive,
        image: [usize; 2],
        window: Window,
    ) -> Primitive {
        let (shape, inputs) = (grids.shape(), weight.shape()[1]);
        let [rows, columns] = image;
        let grid = [shape[1], shape[2], shape[3]];
        let plan = Plan { images: shape[0], image: [rows, columns, inputs], grid, window };
        let mut images = vec![0.0; plan.images * plan.image_size()];
        plan.convolve_transposed(whole(grids).storage(), &packed(weight), &mut images);
        tensor(images, [plan.images, rows, columns, inputs])
    }

    fn convolve_weight(images: Primitive, grids: Primitive, window: Window) -> Primitive {
        let (image, grid) = (images.shape(), grids.shape());
        let plan = Plan {
            images: image[0],
            image: [image[1], image[2], image[3]],
            grid: [grid[1], grid[2], grid[3]],
            window,
        };
        let weight = plan.convolve_weight(whole(images).storage(), whole(grids).storage());
        let ([rows, columns], [outputs, inputs]) = (window.kernel, [grid[3], image[3]]);
        tensor(swap_inner(&weight, outputs, rows * columns), [outputs, inputs, rows, columns])
    }
}

#[cfg(test)]
mod tests {
    use super::super::composed;
    use super::*;
    use crate::random::{Purpose, Random};

    fn numbers<const D: usize>(seed: u64, shape: [usize; D]) -> Primitive {
        let mut random = Random::new(seed, Purpose::Noise, 0);
        let count = shape.iter().product();
        tensor((0..count).map(|_| 2.0 * random.uniform() - 1.0).collect(), shape)
    }

    /// Windows, images and channels: square and not, padded on one side, larger than the image, cut off.
    fn cases() -> Vec<(Window, [usize; 2], [usize; 2])> {
        let uneven = |kernel, rows, columns| Window { kernel, stride: 1, rows, columns };
        vec![
            (Window::square(1, 1, 0), [4, 3], [5, 7]),
            (Window::square(1, 2, 0), [5, 4], [3, 2]),
            (Window::square(3, 1, 1), [4, 6], [3, 5]),
            (Window::square(3, 2, 1), [5, 8], [2, 3]),
            (Window::square(4, 2, 1), [8, 6], [3, 4]),
            (Window::square(7, 2, 3), [9, 4], [3, 2]),
            (uneven([2, 3], [2, 0], [1, 1]), [5, 4], [4, 3]),
            (uneven([1, 2], [0, 0], [2, 0]), [3, 5], [2, 6]),
            (uneven([4, 7], [3, 0], [3, 3]), [2, 2], [2, 3]),
        ]
    }

    /// Every product by its indices, in double precision: position, weight and pixel.
    fn for_each_product(
        images: usize,
        [rows, columns]: [usize; 2],
        [inputs, outputs]: [usize; 2],
        window: Window,
        mut product: impl FnMut(usize, usize, usize),
    ) {
        let Window { kernel: [height, width], stride, .. } = window;
        let grid = window.positions([rows, columns]);
        for i in 0..images * grid[0] * grid[1] * outputs * inputs * height * width {
            let mut rest = i;
            let mut next = |size: usize| {
                let index = rest % size;
                rest /= size;
                index
            };
            let (kx, ky, input, output) = (next(width), next(height), next(inputs), next(outputs));
            let (x, y, image) = (next(grid[1]), next(grid[0]), next(images));
            let row = (y * stride + ky).checked_sub(window.rows[0]);
            let column = (x * stride + kx).checked_sub(window.columns[0]);
            let (Some(row), Some(column)) = (row, column) else { continue };
            if row < rows && column < columns {
                product(
                    ((image * grid[0] + y) * grid[1] + x) * outputs + output,
                    ((output * inputs + input) * height + ky) * width + kx,
                    ((image * rows + row) * columns + column) * inputs + input,
                );
            }
        }
    }

    #[track_caller]
    fn assert_close(found: &Primitive, expected: &[f64]) {
        let found = found.to_contiguous();
        let found: &[f32] = found.storage();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{found}, not {expected}");
        }
    }

    /// Ours and burn's composition, both against plain loops. 11 images are no multiple of the blocks.
    #[test]
    fn convolutions_equal_plain_loops() {
        for (window, image, [inputs, outputs]) in cases() {
            for count in [1, 11] {
                let [rows, columns] = window.positions(image);
                let images = numbers(1, [count, image[0], image[1], inputs]);
                let grids = numbers(2, [count, rows, columns, outputs]);
                let weight = numbers(3, [outputs, inputs, window.kernel[0], window.kernel[1]]);
                let wide = |tensor: &Primitive| -> Vec<f64> {
                    tensor.storage::<f32>().iter().copied().map(f64::from).collect()
                };
                let (pixels, values, weights) = (wide(&images), wide(&grids), wide(&weight));
                let mut forward = vec![0.0; values.len()];
                let mut backward = vec![0.0; pixels.len()];
                let mut slopes = vec![0.0; weights.len()];
                for_each_product(count, image, [inputs, outputs], window, |value, by, pixel| {
                    forward[value] += weights[by] * pixels[pixel];
                    backward[pixel] += weights[by] * values[value];
                    slopes[by] += values[value] * pixels[pixel];
                });
                let (i, g, w) = (|| images.clone(), || grids.clone(), || weight.clone());
                assert_close(&Flex::convolve(i(), w(), window), &forward);
                assert_close(&Flex::convolve_transposed(g(), w(), image, window), &backward);
                assert_close(&Flex::convolve_weight(i(), g(), window), &slopes);
                assert_close(&composed::convolve::<Flex>(i(), w(), window), &forward);
                let transposed = composed::convolve_transposed::<Flex>(g(), w(), image, window);
                assert_close(&transposed, &backward);
                assert_close(&composed::convolve_weight::<Flex>(i(), g(), window), &slopes);
            }
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let window = Window::square(3, 1, 1);
        let images = numbers(1, [13, 9, 9, 6]);
        let grids = numbers(2, [13, 9, 9, 10]);
        let weight = numbers(3, [10, 6, 3, 3]);
        let all = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let bits = |tensor: Primitive| -> Vec<u32> {
                tensor.storage::<f32>().iter().map(|x| x.to_bits()).collect()
            };
            pool.install(|| {
                [
                    bits(Flex::convolve(images.clone(), weight.clone(), window)),
                    bits(Flex::convolve_transposed(grids.clone(), weight.clone(), [9, 9], window)),
                    bits(Flex::convolve_weight(images.clone(), grids.clone(), window)),
                ]
            })
        };
        let alone = all(1);
        assert_eq!(alone, all(2));
        assert_eq!(alone, all(5));
    }

    #[test]
    fn views_are_read_as_what_they_show() {
        use burn::backend::ops::FloatTensorOps;
        let window = Window::square(3, 1, 1);
        let images = numbers(1, [2, 3, 5, 4]);
        let weight = numbers(3, [3, 4, 3, 3]);
        // From channels outermost, without moving a number.
        let outermost = Flex::float_permute(images.clone(), &[0, 3, 1, 2]).to_contiguous();
        let view = Flex::float_permute(outermost, &[0, 2, 3, 1]);
        let found = Flex::convolve(view, weight.clone(), window);
        let expected = Flex::convolve(images, weight, window);
        assert_eq!(found.storage::<f32>(), expected.storage::<f32>());
    }
}
