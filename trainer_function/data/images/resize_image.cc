// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/images/resize_image.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lambdadnn {
namespace {

// Weights are whole numbers of 1 / 2^22, as in Pillow: sums of bytes times weights fit 32 bits, and
// no processor rounds them otherwise.
constexpr int kWeightBits = 22;

// One line of an image, scaled: each pixel is a weighted mean of `weights_each` of the old ones or
// fewer, from first[i] on.
struct ScaledLine {
  std::vector<int64_t> first;
  std::vector<int64_t> count;
  std::vector<int32_t> weights;  // weights_each of each pixel
  int64_t weights_each = 0;
};

// Halves go up.
int64_t Nearest(double value) { return static_cast<int64_t>(std::floor(value + 0.5)); }

// Pixels [begin, begin + wanted) of a line of `old` pixels that is scaled to `scaled`.
ScaledLine ScaleLine(int64_t old, int64_t scaled, int64_t begin, int64_t wanted) {
  const double scale = static_cast<double>(old) / static_cast<double>(scaled);
  const double reach = std::max(scale, 1.0);  // of the triangle that weighs old pixels
  ScaledLine line;
  line.weights_each = 2 * static_cast<int64_t>(std::ceil(reach)) + 1;
  line.weights.resize(static_cast<size_t>(wanted * line.weights_each));
  std::vector<double> exact(static_cast<size_t>(line.weights_each));
  for (int64_t i = 0; i < wanted; ++i) {
    const double centre = (static_cast<double>(begin + i) + 0.5) * scale;
    const int64_t from = std::max<int64_t>(0, Nearest(centre - reach));
    const int64_t to = std::min(old, Nearest(centre + reach));
    double sum = 0;
    for (int64_t at = from; at < to; ++at) {
      const double distance = std::abs((static_cast<double>(at) - centre + 0.5) * (1.0 / reach));
      exact[static_cast<size_t>(at - from)] = distance < 1 ? 1 - distance : 0;
      sum += exact[static_cast<size_t>(at - from)];
    }
    for (int64_t k = 0; k < to - from; ++k) {
      const double share = exact[static_cast<size_t>(k)] / sum;
      line.weights[static_cast<size_t>(i * line.weights_each + k)] =
          static_cast<int32_t>(Nearest(share * (1 << kWeightBits)));
    }
    line.first.push_back(from);
    line.count.push_back(to - from);
  }
  return line;
}

uint8_t ToByte(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

// Scales each of so many rows, which begin row_bytes after each other.
template <size_t kChannels>
void ScaleRows(const ScaledLine& line, const uint8_t* in, int64_t rows, int64_t row_bytes,
               uint8_t* out) {
  for (int64_t row = 0; row < rows; ++row, in += row_bytes) {
    const int32_t* weights = line.weights.data();
    for (size_t pixel = 0; pixel < line.first.size(); ++pixel, weights += line.weights_each) {
      const uint8_t* from = in + static_cast<size_t>(line.first[pixel]) * kChannels;
      std::array<int32_t, kChannels> sums;
      sums.fill(1 << (kWeightBits - 1));
      for (int64_t k = 0; k < line.count[pixel]; ++k, from += kChannels) {
        for (size_t channel = 0; channel < kChannels; ++channel) {
          sums[channel] += weights[k] * from[channel];
        }
      }
      for (const int32_t sum : sums) *out++ = ToByte(sum);
    }
  }
}

// Scales the columns, all of them together: rows are read as they lie. `in` begins with
// row `skipped`; a row has `row_bytes`, and so has one of `out`.
void ScaleColumns(const ScaledLine& column, const uint8_t* in, int64_t row_bytes, int64_t skipped,
                  uint8_t* out) {
  std::vector<int32_t> sums(static_cast<size_t>(row_bytes));
  for (size_t row = 0; row < column.first.size(); ++row) {
    std::fill(sums.begin(), sums.end(), 1 << (kWeightBits - 1));
    const int32_t* const weights =
        column.weights.data() + static_cast<int64_t>(row) * column.weights_each;
    for (int64_t k = 0; k < column.count[row]; ++k) {
      const uint8_t* const from = in + (column.first[row] - skipped + k) * row_bytes;
      const int32_t weight = weights[k];
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += weight * from[i];
    }
    for (const int32_t sum : sums) *out++ = ToByte(sum);
  }
}

// Half of what sticks out, halves to the even number: Python's round().
int64_t CropBegin(int64_t scaled, int64_t wanted) {
  const int64_t half = (scaled - wanted) / 2;
  return (scaled - wanted) % 2 == 0 ? half : half + half % 2;
}

ImageSize CoveringSize(ImageSize size, ImageSize wanted) {
  // Whose side needs the larger factor decides.
  if (wanted.height * size.width >= wanted.width * size.height) {
    return {wanted.height, wanted.height * size.width / size.height};
  }
  return {wanted.width * size.height / size.width, wanted.width};
}

// Rows first, as Pillow does, those alone that the columns need. `in`: pixels whose rows begin
// row_bytes after each other, of which `row` and `column` name the numbers.
void ScaleBoth(const ScaledLine& row, const ScaledLine& column, const uint8_t* in,
               int64_t row_bytes, int channels, uint8_t* out) {
  const auto width = static_cast<int64_t>(row.first.size());
  const int64_t top = column.first.front();
  const int64_t rows = column.first.back() + column.count.back() - top;
  const int64_t narrow_bytes = width * channels;
  std::vector<uint8_t> narrow(static_cast<size_t>(rows * narrow_bytes));
  const auto scale_rows = channels == 3 ? ScaleRows<3> : ScaleRows<1>;
  scale_rows(row, in + top * row_bytes, rows, row_bytes, narrow.data());
  ScaleColumns(column, narrow.data(), narrow_bytes, top, out);
}

}  // namespace

Image ResizeAndCrop(const Image& image, ImageSize wanted) {
  if (image.size == wanted) return image;
  const ImageSize scaled = CoveringSize(image.size, wanted);
  const ScaledLine row = ScaleLine(image.size.width, scaled.width,
                                   CropBegin(scaled.width, wanted.width), wanted.width);
  const ScaledLine column = ScaleLine(image.size.height, scaled.height,
                                      CropBegin(scaled.height, wanted.height), wanted.height);
  Image result{wanted, image.channels, {}};
  result.pixels.resize(static_cast<size_t>(wanted.height * wanted.width * image.channels));
  ScaleBoth(row, column, image.pixels.data(), image.size.width * image.channels, image.channels,
            result.pixels.data());
  return result;
}

ImageCrop CenterCrop(ImageSize size, ImageSize wanted) {
  return {CropBegin(size.height, wanted.height), CropBegin(size.width, wanted.width), wanted};
}

void CropAndResize(std::span<const uint8_t> planes, ImageSize size, const ImageCrop& crop,
                   ImageSize wanted, std::span<uint8_t> out) {
  const ScaledLine row = ScaleLine(crop.size.width, wanted.width, 0, wanted.width);
  const ScaledLine column = ScaleLine(crop.size.height, wanted.height, 0, wanted.height);
  const auto plane = static_cast<size_t>(size.height * size.width);
  const auto wanted_plane = static_cast<size_t>(wanted.height * wanted.width);
  const auto first = static_cast<size_t>(crop.top * size.width + crop.left);
  for (size_t channel = 0; channel * plane < planes.size(); ++channel) {
    ScaleBoth(row, column, planes.data() + channel * plane + first, size.width, 1,
              out.data() + channel * wanted_plane);
  }
}

}  // namespace lambdadnn
