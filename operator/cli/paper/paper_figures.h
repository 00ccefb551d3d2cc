// SPDX-License-Identifier: Apache-2.0
// What papers print beside what this planner computes: `lambdadnn predict --paper NAME`. A paper is
// a file with its figures and a row in paper_figures.cc.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/json/json_reader.h"

namespace lambdadnn {

struct PaperFigure {
  std::string group;  // the table or section; figures of one follow each other
  std::string name;
  std::string paper;  // as printed there, with its unit
  std::string ours;   // empty = not computed
  // Of numbers, by which share ours is above the paper's.
  std::optional<double> above = {};
  // Why they differ, one sentence; of a whole group where only its last figure has one.
  std::string difference = "";
};

struct PaperKind {
  std::string_view name;   // "feng"
  std::string_view title;  // of the paper
  // Some figures are durations of our own searches.
  std::vector<PaperFigure> (*figures)(Clock& clock);
};

std::span<const PaperKind> PaperKinds();
// Null when there is none of this name.
const PaperKind* FindPaper(std::string_view name);
// "lambdadnn, feng, fasdl".
std::string PaperNames();

// A number of the paper beside ours.
PaperFigure NumberFigure(std::string group, std::string name, double paper, double ours,
                         const char* format, std::string difference = "");

// At most 80 columns.
std::string FormatFigures(const PaperKind& paper, const std::vector<PaperFigure>& figures);
// {paper, title, figures: [{group, name, paper, ours, above, difference}]}.
Json FiguresToJson(const PaperKind& paper, const std::vector<PaperFigure>& figures);

std::vector<PaperFigure> LambdaDnnFigures(Clock& clock);
std::vector<PaperFigure> FengFigures(Clock& clock);
std::vector<PaperFigure> FasDlFigures(Clock& clock);

}  // namespace lambdadnn
