// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/digit_glyphs.h"

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/text.h"

namespace lambdadnn {
namespace {

// Strokes are separated by ';'. M x y: begin; L x y: line; Q cx cy x y and C c1x c1y c2x c2y x y:
// Bezier curves; A x y rx ry from to: arc around (x, y) in degrees (multiples of 5, clockwise from
// the right), joined to what came before.
// NOLINTBEGIN(bugprone-suspicious-missing-comma): long ones are several literals.
constexpr std::string_view kGlyphs[10][kDigitFonts] = {
    {"A .5 .5 .28 .42 -90 270", "A .5 .5 .2 .44 -90 270 ; M .64 .24 L .36 .76",
     "M .5 .08 C .8 .08 .78 .25 .78 .5 C .78 .75 .8 .92 .5 .92 C .2 .92 .22 .75 .22 .5 C .22 .25 "
     ".2 "
     ".08 .5 .08",
     "M .6 .1 C .2 .05 .15 .6 .3 .82 C .45 1 .75 .85 .78 .5 C .8 .25 .65 .1 .42 .14",
     "M .26 .1 L .74 .1 L .74 .9 L .26 .9 L .26 .1"},
    {"M .5 .08 L .5 .92", "M .32 .28 L .54 .08 L .54 .92",
     "M .34 .26 L .52 .08 L .52 .92 ; M .3 .92 L .74 .92", "M .6 .08 L .42 .92",
     "M .3 .3 Q .48 .25 .55 .08 L .55 .92"},
    {"M .24 .3 C .26 .02 .76 .02 .74 .32 C .72 .55 .35 .7 .22 .92 L .78 .92",
     "M .25 .25 C .35 .02 .78 .08 .7 .38 C .62 .62 .4 .8 .28 .88 C .12 .95 .2 .7 .38 .82 C .5 .9 "
     ".65 "
     ".96 .8 .84",
     "M .22 .22 Q .5 -.04 .74 .2 Q .8 .4 .24 .92 L .8 .92",
     "A .5 .3 .22 .22 170 400 L .22 .9 Q .5 .8 .8 .92",
     "M .24 .1 L .74 .1 L .74 .5 L .26 .5 L .26 .9 L .76 .9"},
    {"A .48 .29 .24 .21 -155 90 A .46 .71 .29 .21 -90 155",
     "M .24 .1 L .74 .1 L .46 .42 C .85 .4 .88 .92 .48 .92 C .35 .92 .26 .86 .22 .78",
     "M .26 .2 C .4 .0 .76 .1 .7 .32 C .66 .46 .5 .5 .42 .48 C .36 .44 .46 .42 .54 .48 C .8 .56 .8 "
     ".88 .5 .92 C .36 .94 .26 .86 .24 .78",
     "M .25 .14 Q .8 .02 .7 .3 Q .64 .46 .42 .5 Q .82 .54 .74 .76 Q .6 1 .22 .86",
     "M .26 .1 L .74 .1 L .74 .9 L .26 .9 ; M .36 .5 L .74 .5"},
    {"M .62 .92 L .62 .08 L .2 .64 L .82 .64", "M .3 .1 L .24 .55 L .78 .55 ; M .66 .1 L .62 .92",
     "M .3 .1 Q .2 .55 .36 .55 L .7 .5 ; M .7 .12 L .6 .92",
     "M .58 .08 L .22 .58 L .74 .58 ; M .58 .08 L .54 .92",
     "M .26 .1 L .26 .5 L .74 .5 ; M .74 .1 L .74 .9"},
    {"M .74 .1 L .32 .1 L .28 .46 C .5 .34 .8 .42 .78 .68 C .76 .96 .36 .98 .22 .8",
     "M .34 .12 L .32 .44 C .9 .36 .9 .96 .22 .9 ; M .34 .12 L .78 .1",
     "M .76 .12 Q .3 .06 .3 .32 Q .3 .46 .52 .48 Q .84 .54 .74 .78 Q .58 1 .22 .84",
     "M .7 .08 L .36 .08 L .3 .42 A .48 .66 .26 .26 -120 140",
     "M .74 .1 L .26 .1 L .26 .5 L .74 .5 L .74 .9 L .26 .9"},
    {"M .7 .1 C .3 .2 .22 .5 .24 .7 A .5 .7 .26 .22 180 -180",
     "M .6 .08 Q .24 .4 .26 .7 C .26 1 .76 1 .74 .7 C .72 .45 .3 .45 .27 .72",
     "M .72 .16 C .5 .0 .22 .3 .24 .66 C .26 1 .7 .98 .74 .74 C .76 .52 .46 .46 .36 .62 C .3 .72 "
     ".4 .8 "
     ".5 .76",
     "M .62 .08 L .27 .6 A .5 .7 .26 .22 205 565",
     "M .74 .1 L .26 .1 L .26 .9 L .74 .9 L .74 .5 L .26 .5"},
    {"M .22 .1 L .78 .1 L .42 .92", "M .22 .1 L .78 .1 L .42 .92 ; M .36 .52 L .7 .52",
     "M .22 .14 L .76 .1 Q .5 .5 .46 .92", "M .22 .26 L .24 .1 L .76 .1 L .5 .92",
     "M .24 .3 L .24 .1 L .74 .1 L .74 .9"},
    {"A .5 .29 .2 .2 -90 270 ; A .5 .71 .26 .21 -90 270",
     "M .7 .2 C .6 .0 .28 .06 .3 .28 C .32 .5 .76 .5 .76 .72 C .74 .98 .26 .98 .26 .72 C .28 .5 "
     ".72 "
     ".46 .7 .2",
     "M .68 .14 Q .3 .02 .32 .3 L .72 .66 Q .78 .92 .5 .92 Q .22 .92 .28 .68 L .68 .34 Q .76 .2 "
     ".68 "
     ".14",
     "A .5 .26 .16 .17 -90 270 ; A .5 .67 .24 .25 -90 270",
     "M .26 .1 L .74 .1 L .74 .9 L .26 .9 L .26 .1 ; M .26 .5 L .74 .5"},
    {"A .5 .3 .24 .21 0 -360 L .7 .92", "A .5 .3 .25 .21 0 -360 Q .78 .8 .32 .92",
     "M .7 .2 C .5 .0 .22 .14 .26 .36 C .3 .56 .64 .5 .7 .26 Q .72 .6 .6 .92",
     "M .72 .3 C .72 .02 .28 .04 .26 .3 C .26 .56 .66 .54 .72 .34 ; M .73 .12 L .68 .92",
     "M .74 .5 L .26 .5 L .26 .1 L .74 .1 L .74 .9 L .26 .9"}};
// NOLINTEND(bugprone-suspicious-missing-comma)

constexpr int kStepDegrees = 5;
constexpr int kCurveSegments = 8;

// (cos, sin) of `degrees`, by repeated rotation: libm's last bits differ between processors.
GlyphPoint Direction(int degrees) {
  constexpr double kCosine = 0.99619469809174555;  // of 5 degrees
  constexpr double kSine = 0.087155742747658174;
  GlyphPoint point{1, 0};
  const int steps = (degrees % 360 + 360) % 360 / kStepDegrees;
  for (int i = 0; i < steps; ++i) {
    point = {point.x * kCosine - point.y * kSine, point.x * kSine + point.y * kCosine};
  }
  return point;
}

class PathReader {
 public:
  explicit PathReader(std::string_view path) : words_(Split(path, ' ')) {}

  Glyph Read() {
    glyph_.emplace_back();
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (word == ";") {
        glyph_.emplace_back();
      } else if (word == "M" || word == "L") {
        glyph_.back().push_back(Point());
      } else if (word == "Q") {
        const GlyphPoint control = Point();
        const GlyphPoint begin = glyph_.back().back();
        const GlyphPoint end = Point();
        // The cubic with the same shape.
        Curve({begin.x + (control.x - begin.x) * 2 / 3, begin.y + (control.y - begin.y) * 2 / 3},
              {end.x + (control.x - end.x) * 2 / 3, end.y + (control.y - end.y) * 2 / 3}, end);
      } else if (word == "C") {
        const GlyphPoint first = Point();
        const GlyphPoint second = Point();
        Curve(first, second, Point());
      } else {
        LDNN_CHECK(word == "A", "unknown path command");
        Arc();
      }
    }
    return std::move(glyph_);
  }

 private:
  double Number() { return std::strtod(words_.at(next_++).c_str(), nullptr); }
  GlyphPoint Point() {
    const double x = Number();
    return {x, Number()};
  }

  void Curve(GlyphPoint first, GlyphPoint second, GlyphPoint end) {
    const GlyphPoint begin = glyph_.back().back();
    for (int i = 1; i <= kCurveSegments; ++i) {
      const double t = static_cast<double>(i) / kCurveSegments;
      const double u = 1 - t;
      const double a = u * u * u;
      const double b = 3 * u * u * t;
      const double c = 3 * u * t * t;
      const double d = t * t * t;
      glyph_.back().push_back({a * begin.x + b * first.x + c * second.x + d * end.x,
                               a * begin.y + b * first.y + c * second.y + d * end.y});
    }
  }

  void Arc() {
    const GlyphPoint center = Point();
    const GlyphPoint radius = Point();
    const int from = static_cast<int>(Number());
    const int to = static_cast<int>(Number());
    const int step = from < to ? 2 * kStepDegrees : -2 * kStepDegrees;
    for (int angle = from;; angle += step) {
      if ((step > 0) == (angle > to)) angle = to;
      const GlyphPoint direction = Direction(angle);
      glyph_.back().push_back(
          {center.x + radius.x * direction.x, center.y + radius.y * direction.y});
      if (angle == to) return;
    }
  }

  const std::vector<std::string> words_;
  size_t next_ = 0;
  Glyph glyph_;
};

}  // namespace

Glyph MakeGlyph(int digit, int font) { return PathReader(kGlyphs[digit][font]).Read(); }

}  // namespace lambdadnn
