// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/paper/paper_figures.h"

#include <cstdio>
#include <utility>

#include "common/base/named_rows.h"
#include "common/base/text.h"
#include "operator/cli/plan/outcome_text.h"

namespace lambdadnn {
namespace {

constexpr PaperKind kPaperKinds[] = {
    {"lambdadnn", "λDNN, IEEE Transactions on Computers 71(2), 2022", LambdaDnnFigures},
    {"feng", "Feng et al., IEEE CLOUD 2018", FengFigures},
    {"fasdl", "FasDL, IEEE Transactions on Computers 74(2), 2025", FasDlFigures},
};

}  // namespace

std::span<const PaperKind> PaperKinds() { return kPaperKinds; }

const PaperKind* FindPaper(std::string_view name) { return FindRow(PaperKinds(), name); }

std::string PaperNames() { return NamesOf(PaperKinds()); }

PaperFigure NumberFigure(std::string group, std::string name, double paper, double ours,
                         const char* format, std::string difference) {
  char text[2][64];
  std::snprintf(text[0], sizeof text[0], format, paper);
  std::snprintf(text[1], sizeof text[1], format, ours);
  PaperFigure figure{std::move(group), std::move(name), text[0], text[1]};
  if (paper != 0) figure.above = ours / paper - 1;
  figure.difference = std::move(difference);
  return figure;
}

std::string FormatFigures(const PaperKind& paper, const std::vector<PaperFigure>& figures) {
  constexpr size_t kName = 34;
  constexpr size_t kNumber = 17;
  const auto row = [](const std::string& name, const std::string& theirs, const std::string& ours) {
    return "  " + PadRight(name, kName) + " " + PadRight(theirs, kNumber) + " " +
           PadRight(ours, kNumber);
  };
  std::string text = std::string(paper.title) + "\n";
  const std::string* group = nullptr;
  for (const PaperFigure& figure : figures) {
    if (group == nullptr || *group != figure.group) {
      text += "\n" + row(figure.group, "paper", "ours") + "\n";
      group = &figure.group;
    }
    text += row("  " + figure.name, figure.paper, figure.ours.empty() ? "-" : figure.ours);
    if (figure.above && figure.ours != figure.paper) {
      char above[32];
      std::snprintf(above, sizeof above, "%+.1f %%", 100 * *figure.above);
      text += above;
    }
    text += "\n";
    if (!figure.difference.empty()) text += WrapWords(figure.difference, 6);
  }
  std::string trimmed;
  for (const std::string& line : Split(text, '\n')) {
    const size_t end = line.find_last_not_of(' ');
    trimmed += (end == std::string::npos ? "" : line.substr(0, end + 1)) + "\n";
  }
  trimmed.pop_back();  // of the empty text after the last line's end
  return trimmed;
}

Json FiguresToJson(const PaperKind& paper, const std::vector<PaperFigure>& figures) {
  Json rows = Json::array();
  for (const PaperFigure& figure : figures) {
    Json row = {{"group", figure.group}, {"name", figure.name}, {"paper", figure.paper},
                {"ours", nullptr},       {"above", nullptr},    {"difference", figure.difference}};
    if (!figure.ours.empty()) row["ours"] = figure.ours;
    if (figure.above) row["above"] = *figure.above;
    rows.push_back(std::move(row));
  }
  return {{"paper", paper.name}, {"title", paper.title}, {"figures", std::move(rows)}};
}

}  // namespace lambdadnn
