// SPDX-License-Identifier: Apache-2.0
// Five hand-made line fonts for the digits 0 to 9, each glyph as polylines in the unit square (x to
// the right, y down).
#pragma once

#include <vector>

namespace lambdadnn {

inline constexpr int kDigitFonts = 5;

struct GlyphPoint {
  double x = 0;
  double y = 0;
};
using GlyphStroke = std::vector<GlyphPoint>;
using Glyph = std::vector<GlyphStroke>;

// digit in [0, 10), font in [0, kDigitFonts). Flattens the glyph's curves; the same points on every
// machine.
Glyph MakeGlyph(int digit, int font);

}  // namespace lambdadnn
