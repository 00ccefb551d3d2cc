// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/inspection_page.h"

#include <algorithm>
#include <cstdio>

#include "common/base/base64.h"
#include "common/base/bytes.h"
#include "common/base/markup.h"
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {
namespace {

constexpr const char* kStyle = R"css(
:root{--bg:#fbfbfa;--ink:#1c2024;--soft:#60646c;--line:#e3e4e8;--bar:#2463c5;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--bg:#15171a;--ink:#e9eaec;--soft:#a3a8b0;--line:#33373d;--bar:#79a8f5;--bad:#ff8a80}}
body{margin:0 auto;max-width:1100px;padding:24px 16px 48px;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:20px;overflow-wrap:anywhere;margin:0 0 12px}h2{font-size:16px;margin:28px 0 8px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:3px 10px;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:500}
td i{display:inline-block;height:9px;background:var(--bar);border-radius:2px}
.soft{color:var(--soft)}.warning{color:var(--bad)}
.row{display:flex;flex-wrap:wrap;gap:8px;margin:0 0 10px}
figure{margin:0;text-align:center}figcaption{color:var(--soft);font-size:11px}
figure img{display:block;min-height:56px;image-rendering:pixelated;border:1px solid var(--line)}
)css";

constexpr int kBarPixels = 160;

std::string Number(double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// "3", "3 sports".
std::string ClassName(int64_t label, const std::vector<std::string>& names) {
  const std::string number = std::to_string(label);
  return label < std::ssize(names) ? number + " " + names[static_cast<size_t>(label)] : number;
}

std::string Cell(const std::string& text) { return "<td>" + EscapeMarkup(text) + "</td>"; }

std::string NumbersRow(const std::string& what, const NumberSummary& summary) {
  return "<tr>" + Cell(what) + Cell(Number(summary.minimum)) + Cell(Number(summary.maximum)) +
         Cell(Number(summary.mean)) + Cell(Number(summary.standard_deviation)) + "</tr>\n";
}

std::string SetSection(const std::string& name, const SetInspection& set,
                       const std::vector<std::string>& class_names) {
  std::string html = "<h2>" + name + ": " + std::to_string(set.samples) + " samples</h2>\n" +
                     "<table><tr><th></th><th>least</th><th>largest</th><th>mean</th>"
                     "<th>standard deviation</th></tr>\n";
  html += set.tokens.count > 0 ? NumbersRow("tokens", set.tokens)
                               : NumbersRow("features", set.features);
  if (set.targets.count > 0) html += NumbersRow("targets", set.targets);
  html += "</table>\n";
  if (set.class_counts.empty()) return html;
  html += "<table><tr><th>class</th><th>samples</th><th>share</th><th></th></tr>\n";
  const auto most = static_cast<double>(*std::ranges::max_element(set.class_counts));
  for (int64_t label = 0; label < std::ssize(set.class_counts); ++label) {
    const auto count = static_cast<double>(set.class_counts[static_cast<size_t>(label)]);
    const int bar = static_cast<int>(kBarPixels * count / std::max(most, 1.0));
    html += "<tr>" + Cell(ClassName(label, class_names)) + Cell(Number(count)) +
            Cell(Number(100 * count / static_cast<double>(set.samples)) + " %") +
            "<td><i style=\"width:" + std::to_string(bar) + "px\"></i></td></tr>\n";
  }
  return html + "</table>\n";
}

std::string PictureSection(const DatasetInspection& inspection) {
  if (inspection.pictures.empty()) return "";
  std::vector<const SamplePicture*> pictures;
  for (const SamplePicture& picture : inspection.pictures) pictures.push_back(&picture);
  std::ranges::stable_sort(pictures, {}, &SamplePicture::label);
  std::string html = "<h2>First training samples</h2>\n";
  int64_t label = -1;
  for (const SamplePicture* const picture : pictures) {
    if (picture->label != label) {
      if (label >= 0) html += "</div>\n";
      label = picture->label;
      if (inspection.info.classes > 0) {
        html += "<div class=\"soft\">class " +
                EscapeMarkup(ClassName(label, inspection.info.class_names)) + "</div>";
      }
      html += "<div class=\"row\">\n";
    }
    const std::string number = std::to_string(picture->sample);
    html += "<figure><img alt=\"sample " + number + "\" src=\"data:image/png;base64," +
            EncodeBase64(picture->png) + "\"><figcaption>" + number + "</figcaption></figure>\n";
  }
  return html + "</div>\n";
}

}  // namespace

std::string RenderInspection(const DatasetInspection& inspection, std::string_view uri) {
  const DatasetInfo& info = inspection.info;
  const std::string title = EscapeMarkup(uri);
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>" +
      title + "</title><style>" + kStyle + "</style></head><body>\n<h1>" + title + "</h1>\n<p>" +
      EscapeMarkup(
          "Format " + std::string(EnumName(inspection.format)) + ", samples of shape " +
          ShapeText(info.feature_shape) + ", " +
          (info.classes > 0 ? std::to_string(info.classes) + " classes" : "numeric targets") +
          ", " + std::to_string(info.bytes) + " bytes of training files") +
      ".</p>\n<p class=\"soft\">Checksum " + Hex64(inspection.checksum) + "</p>\n";
  for (const std::string& warning : inspection.warnings) {
    html += "<p class=\"warning\">" + EscapeMarkup(warning) + "</p>\n";
  }
  html += PictureSection(inspection);
  html += SetSection("Training set", inspection.train, info.class_names);
  if (inspection.test.samples > 0)
    html += SetSection("Test set", inspection.test, info.class_names);
  return html + "</body></html>\n";
}

}  // namespace lambdadnn
