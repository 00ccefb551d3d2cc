// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "common/base/statistics.h"
#include "common/base/text.h"
#include "operator/cli/paper/paper_figures.h"
#include "operator/planner/merge_tree.h"

namespace lambdadnn {
namespace {

struct MeasuredTree {
  std::vector<int> layers;
  double case_a_seconds;
  double case_b_seconds;
};

// Table III: 50 iterations with 512 MB (A), 20 with 1,536 MB (B).
std::vector<MeasuredTree> TableThree() {
  return {{{1, 5, 22, 100}, 569.55, 789.20},     {{1, 100}, 1216.97, 1848.05},
          {{1, 2, 100}, 878.78, 1195.97},        {{1, 5, 100}, 650.66, 866.29},
          {{1, 25, 100}, 616.67, 920.22},        {{1, 2, 10, 100}, 570.66, 823.25},
          {{1, 5, 50, 100}, 604.90, 890.91},     {{1, 10, 50, 100}, 534.28, 838.89},
          {{1, 2, 10, 50, 100}, 585.25, 883.96}, {{1, 5, 20, 50, 100}, 578.22, 868.78}};
}

std::string NameOfTree(const std::vector<int>& layers) {
  std::vector<std::string> widths;
  for (const int width : layers) widths.push_back(std::to_string(width));
  return "[" + Join(widths, ", ") + "]";
}

using Row3 = std::array<double, 3>;

double Determinant(const std::array<Row3, 3>& m) {
  return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
         m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
         m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

// Least squares of `values` over three columns, by Cramer's rule on the normal equations.
Row3 LeastSquares(const std::vector<Row3>& rows, const std::vector<double>& values) {
  std::array<Row3, 3> normal = {};
  Row3 right = {};
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t a = 0; a < 3; ++a) {
      for (size_t b = 0; b < 3; ++b) normal[a][b] += rows[i][a] * rows[i][b];
      right[a] += rows[i][a] * values[i];
    }
  }
  const double determinant = Determinant(normal);
  Row3 solution = {};
  for (size_t column = 0; column < 3; ++column) {
    std::array<Row3, 3> replaced = normal;
    for (size_t a = 0; a < 3; ++a) replaced[a][column] = right[a];
    solution[column] = Determinant(replaced) / determinant;
  }
  return solution;
}

// A constant, a term for each layer, and one for each transfer of a gradient.
std::vector<double> Fitted(const std::vector<MeasuredTree>& trees,
                           const std::vector<double>& seconds,
                           double (*transfers)(const std::vector<int>&)) {
  std::vector<Row3> rows;
  for (const MeasuredTree& tree : trees) {
    rows.push_back({1, static_cast<double>(tree.layers.size() - 1), transfers(tree.layers)});
  }
  const Row3 terms = LeastSquares(rows, seconds);
  std::vector<double> fitted;
  for (const Row3& row : rows) {
    fitted.push_back(row[0] * terms[0] + row[1] * terms[1] + row[2] * terms[2]);
  }
  return fitted;
}

// Of the pairs of different measured times, those that the fit puts in the same order.
std::string PairsInOrder(const std::vector<double>& seconds, const std::vector<double>& fitted) {
  int same = 0;
  int pairs = 0;
  for (size_t i = 0; i < seconds.size(); ++i) {
    for (size_t j = i + 1; j < seconds.size(); ++j) {
      ++pairs;
      same += (seconds[i] < seconds[j]) == (fitted[i] < fitted[j]) ? 1 : 0;
    }
  }
  return std::to_string(same) + " of " + std::to_string(pairs);
}

std::string Errors(const std::vector<double>& seconds, const std::vector<double>& fitted) {
  std::vector<double> errors;
  for (size_t i = 0; i < seconds.size(); ++i)
    errors.push_back(std::abs(fitted[i] / seconds[i] - 1));
  char text[64];
  std::snprintf(text, sizeof text, "%.2f, %.1f %%", 100 * Mean(errors),
                100 * *std::max_element(errors.begin(), errors.end()));
  return text;
}

std::string Fastest(const std::vector<MeasuredTree>& trees, const std::vector<double>& seconds) {
  const auto fastest = std::min_element(seconds.begin(), seconds.end());
  return NameOfTree(trees[static_cast<size_t>(fastest - seconds.begin())].layers);
}

void AddCase(const std::string& group, double MeasuredTree::* column,
             std::vector<PaperFigure>* figures) {
  const std::vector<MeasuredTree> trees = TableThree();
  std::vector<double> seconds;
  for (const MeasuredTree& tree : trees) seconds.push_back(tree.*column);
  const auto whole = [](const std::vector<int>& layers) {
    return static_cast<double>(LargestFanIns(layers));
  };
  const std::vector<double> fitted = Fitted(trees, seconds, whole);
  const std::vector<double> by_equation = Fitted(trees, seconds, MeanFanIns);
  for (size_t i = 0; i < trees.size(); ++i) {
    figures->push_back(
        NumberFigure(group, NameOfTree(trees[i].layers), seconds[i], fitted[i], "%.2f s"));
  }
  figures->push_back({group, "fastest", Fastest(trees, seconds), Fastest(trees, fitted)});
  figures->push_back({group, "pairs in the measured order", "", PairsInOrder(seconds, fitted)});
  figures->push_back(
      {group, "the same, fan-ins of Eq. (1)", "", PairsInOrder(seconds, by_equation)});
  figures->push_back({group, "mean, largest error of the fit", "", Errors(seconds, fitted)});
  figures->push_back(
      {group, "the same, fan-ins of Eq. (1)", "", Errors(seconds, by_equation), std::nullopt,
       "Single measurements on AWS Lambda, some per cent apart by themselves; ours "
       "are fitted to them: a constant, a term for each layer, one for each fan-in."});
}

void AddStructures(std::vector<PaperFigure>* figures) {
  constexpr int kWorkers = 100;
  const std::string group = "Merging structures, by Eq. (1)";
  const std::vector<int> tree = LeastMeanTree(kWorkers, kMostLayersBetween);
  const MergeTree whole = BestMergeTrees(kWorkers, false).back();
  figures->push_back(
      {group, "best for 100 workers", "[1, 5, 22, 100]", NameOfTree(tree), std::nullopt,
       "With whole fan-ins the busiest servers make it " + std::to_string(LargestFanIns(tree)) +
           " t_m, and " + NameOfTree(whole.layers) + " takes " + std::to_string(whole.fan_ins) +
           "."});
  figures->push_back(
      NumberFigure(group, "Figure 4, 6 workers, one server", 6, MeanFanIns({1, 6}), "%.0f t_m"));
  figures->push_back(
      NumberFigure(group, "Figure 4, two below one", 5, MeanFanIns({1, 2, 6}), "%.0f t_m"));
}

// Inputs and weights of case A's layers: 20 features, 5 x 100 hidden nodes, one output.
double ParametersOfCaseA() {
  double parameters = 0;
  int inputs = 20;
  for (const int outputs : {100, 100, 100, 100, 100, 1}) {
    parameters += (inputs + 1) * outputs;
    inputs = outputs;
  }
  return parameters;
}

void AddPrices(std::vector<PaperFigure>* figures) {
  struct Price {
    int memory_mb;
    double dollars;
  };
  constexpr double kPerMbSecond = 1.63e-8;
  constexpr double kSeconds = 0.1;
  const std::string group = "Table I, dollars per 100 ms";
  for (const Price& price :
       {Price{128, .000000208}, Price{192, .000000313}, Price{256, .000000417},
        Price{1408, .000002292}, Price{1472, .000002396}, Price{1536, .000002501}}) {
    figures->push_back(NumberFigure(group, std::to_string(price.memory_mb) + " MB", price.dollars,
                                    kPerMbSecond * price.memory_mb * kSeconds, "%.9f"));
  }
  figures->back().difference =
      "Ours is Eq. (5) with the paper's p, one slope for its rounded prices.";
}

}  // namespace

std::vector<PaperFigure> FengFigures(Clock& /*clock*/) {
  std::vector<PaperFigure> figures;
  AddStructures(&figures);
  AddCase("Table III, case A", &MeasuredTree::case_a_seconds, &figures);
  AddCase("Table III, case B", &MeasuredTree::case_b_seconds, &figures);
  AddPrices(&figures);
  figures.push_back(
      NumberFigure("Table II, case A", "parameters", 42601, ParametersOfCaseA(), "%.0f"));
  figures.push_back({"Online choice of memory, case A", "of ten runs", "9 x 256, 1 x 512", "",
                     std::nullopt,
                     "The times by size that it descends on are drawn without their numbers."});
  return figures;
}

}  // namespace lambdadnn
