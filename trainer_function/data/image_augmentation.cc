// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/image_augmentation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lambdadnn {
namespace {

// Separate these draws from each other and from others that start from the same seed.
constexpr uint64_t kCropStream = 0x63726f70;
constexpr uint64_t kJitterStream = 0x6a697474;

constexpr int kCropTries = 10;

double Between(double least, double largest, Random& random) {
  return least + (largest - least) * random.Uniform();
}

// Halves to the even number, as Python rounds.
int64_t Rounded(double value) { return static_cast<int64_t>(std::nearbyint(value)); }

struct Pixel {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;
};

// Of an image of one channel, that channel.
class Pixels {
 public:
  Pixels(int64_t channels, std::span<uint8_t> planes)
      : count_(planes.size() / static_cast<size_t>(channels)),
        colored_(channels == 3),
        planes_(planes) {}

  size_t count() const { return count_; }
  bool colored() const { return colored_; }
  Pixel Get(size_t i) const { return {planes_[i], planes_[count_ + i], planes_[2 * count_ + i]}; }
  void Set(size_t i, Pixel pixel) {
    planes_[i] = pixel.red;
    planes_[count_ + i] = pixel.green;
    planes_[2 * count_ + i] = pixel.blue;
  }
  uint8_t Gray(size_t i) const {
    if (!colored_) return planes_[i];
    const Pixel pixel = Get(i);
    return Luma(pixel.red, pixel.green, pixel.blue);
  }

 private:
  const size_t count_;
  const bool colored_;
  std::span<uint8_t> planes_;
};

// factor 1 keeps `value`, 0 gives `other`. Fractions are cut off, as by Pillow's Image.blend.
uint8_t Blend(uint8_t other, uint8_t value, float factor) {
  const float blended = static_cast<float>(other) + factor * static_cast<float>(value - other);
  return static_cast<uint8_t>(std::clamp(blended, 0.0f, 255.0f));
}

uint8_t MeanGray(const Pixels& pixels) {
  uint64_t sum = 0;
  for (size_t i = 0; i < pixels.count(); ++i) sum += pixels.Gray(i);
  return static_cast<uint8_t>((2 * sum + pixels.count()) / (2 * pixels.count()));  // halves go up
}

// Colour as Pillow has it in mode HSV: a byte each.
struct Hsv {
  uint8_t hue = 0;
  uint8_t saturation = 0;
  uint8_t value = 0;
};

Hsv ToHsv(Pixel pixel) {
  const int most = std::max({pixel.red, pixel.green, pixel.blue});
  const int least = std::min({pixel.red, pixel.green, pixel.blue});
  Hsv hsv;
  hsv.value = static_cast<uint8_t>(most);
  if (most == least) return hsv;
  const auto spread = static_cast<float>(most - least);
  const auto below = [&](uint8_t part) { return static_cast<float>(most - part) / spread; };
  const float red = below(pixel.red);
  const float green = below(pixel.green);
  const float blue = below(pixel.blue);
  float sixths = 0;
  if (pixel.red == most) {
    sixths = blue - green;
  } else if (pixel.green == most) {
    sixths = static_cast<float>(2.0 + static_cast<double>(red) - static_cast<double>(blue));
  } else {
    sixths = static_cast<float>(4.0 + static_cast<double>(green) - static_cast<double>(red));
  }
  const auto turns = static_cast<float>(std::fmod(static_cast<double>(sixths) / 6.0 + 1.0, 1.0));
  hsv.hue = static_cast<uint8_t>(static_cast<double>(turns) * 255.0);
  hsv.saturation =
      static_cast<uint8_t>(static_cast<double>(spread / static_cast<float>(most)) * 255.0);
  return hsv;
}

Pixel ToRgb(Hsv hsv) {
  if (hsv.saturation == 0) return {hsv.value, hsv.value, hsv.value};
  const auto sixths = static_cast<float>(static_cast<double>(hsv.hue) * 6.0 / 255.0);
  const auto sector = static_cast<int>(sixths);
  const auto within = static_cast<float>(static_cast<double>(hsv.hue) * 6.0 / 255.0 - sector);
  const auto saturation = static_cast<float>(static_cast<double>(hsv.saturation) / 255.0);
  const auto part = [&](double share) {
    const double scaled = static_cast<double>(hsv.value) * (1.0 - share);
    return static_cast<uint8_t>(std::clamp(std::round(scaled), 0.0, 255.0));
  };
  const uint8_t low = part(static_cast<double>(saturation));
  const uint8_t falling = part(static_cast<double>(saturation * within));
  const uint8_t rising =
      part(static_cast<double>(saturation) * (1.0 - static_cast<double>(within)));
  switch (sector % 6) {
    case 0:
      return {hsv.value, rising, low};
    case 1:
      return {falling, hsv.value, low};
    case 2:
      return {low, hsv.value, rising};
    case 3:
      return {low, falling, hsv.value};
    case 4:
      return {rising, low, hsv.value};
    default:
      return {hsv.value, low, falling};
  }
}

}  // namespace

ImageCrop DrawCrop(const RandomResizedCrop& crop, ImageSize size, Random& random) {
  const auto height = static_cast<double>(size.height);
  const auto width = static_cast<double>(size.width);
  for (int attempt = 0; attempt < kCropTries; ++attempt) {
    const double area = height * width * Between(crop.least_scale, crop.largest_scale, random);
    const double ratio =
        std::exp(Between(std::log(crop.least_ratio), std::log(crop.largest_ratio), random));
    const ImageSize cut = {Rounded(std::sqrt(area / ratio)), Rounded(std::sqrt(area * ratio))};
    if (cut.height < 1 || cut.width < 1 || cut.height > size.height || cut.width > size.width) {
      continue;
    }
    const auto top = random.Below(static_cast<uint64_t>(size.height - cut.height + 1));
    const auto left = random.Below(static_cast<uint64_t>(size.width - cut.width + 1));
    return {static_cast<int64_t>(top), static_cast<int64_t>(left), cut};
  }
  ImageSize cut = size;
  if (width / height < crop.least_ratio) {
    cut.height = std::max<int64_t>(1, Rounded(width / crop.least_ratio));
  } else if (width / height > crop.largest_ratio) {
    cut.width = std::max<int64_t>(1, Rounded(height * crop.largest_ratio));
  }
  return {(size.height - cut.height) / 2, (size.width - cut.width) / 2, cut};
}

std::vector<JitterStep> DrawJitter(const ColorJitter& jitter, Random& random) {
  std::vector<JitterKind> order = {JitterKind::kBrightness, JitterKind::kContrast,
                                   JitterKind::kSaturation, JitterKind::kHue};
  for (size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[random.Below(left)]);
  }
  std::vector<JitterStep> steps;
  for (const JitterKind kind : order) {
    if (kind == JitterKind::kHue) {
      if (jitter.hue > 0) steps.push_back({kind, Between(-jitter.hue, jitter.hue, random)});
      continue;
    }
    const double reach = kind == JitterKind::kBrightness ? jitter.brightness
                         : kind == JitterKind::kContrast ? jitter.contrast
                                                         : jitter.saturation;
    if (reach <= 0) continue;
    steps.push_back({kind, Between(std::max(0.0, 1 - reach), 1 + reach, random)});
  }
  return steps;
}

void AdjustColor(const JitterStep& step, int64_t channels, std::span<uint8_t> planes) {
  Pixels pixels(channels, planes);
  const auto factor = static_cast<float>(step.factor);
  switch (step.kind) {
    case JitterKind::kBrightness:
    case JitterKind::kContrast: {
      const uint8_t other = step.kind == JitterKind::kContrast ? MeanGray(pixels) : uint8_t{0};
      for (uint8_t& byte : planes) byte = Blend(other, byte, factor);
      return;
    }
    case JitterKind::kSaturation:
      if (!pixels.colored()) return;
      for (size_t i = 0; i < pixels.count(); ++i) {
        const uint8_t gray = pixels.Gray(i);
        const Pixel pixel = pixels.Get(i);
        pixels.Set(i, {Blend(gray, pixel.red, factor), Blend(gray, pixel.green, factor),
                       Blend(gray, pixel.blue, factor)});
      }
      return;
    case JitterKind::kHue: {
      if (!pixels.colored()) return;
      const auto shift = static_cast<uint8_t>(static_cast<int>(step.factor * 255));
      for (size_t i = 0; i < pixels.count(); ++i) {
        Hsv hsv = ToHsv(pixels.Get(i));
        hsv.hue = static_cast<uint8_t>(hsv.hue + shift);
        pixels.Set(i, ToRgb(hsv));
      }
    }
  }
}

bool ChangesBytes(const Augmentation& augmentation) {
  return augmentation.random_resized_crop.has_value() || augmentation.color_jitter.active();
}

void AugmentBytes(const Augmentation& augmentation, uint64_t augment_seed, int64_t sample,
                  ImageSize stored, ImageSize wanted, std::span<const uint8_t> in,
                  std::span<uint8_t> out) {
  const auto number = static_cast<uint64_t>(sample);
  if (const auto& crop = augmentation.random_resized_crop) {
    SeededRandom random(MixSeed({kCropStream, augment_seed, number}));
    CropAndResize(in, stored, DrawCrop(*crop, stored, random), wanted, out);
  } else {
    std::copy(in.begin(), in.end(), out.begin());
  }
  if (!augmentation.color_jitter.active()) return;
  SeededRandom random(MixSeed({kJitterStream, augment_seed, number}));
  const int64_t channels = static_cast<int64_t>(out.size()) / (wanted.height * wanted.width);
  for (const JitterStep& step : DrawJitter(augmentation.color_jitter, random)) {
    AdjustColor(step, channels, out);
  }
}

}  // namespace lambdadnn
