// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/csv_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "common/base/text.h"
#include "trainer_function/data/line_index.h"

namespace lambdadnn {
namespace {

char FindSeparator(std::string_view line) {
  for (const char separator : {',', ';', '\t'}) {
    if (line.find(separator) != std::string_view::npos) return separator;
  }
  return ',';
}

// The next field of `rest`, which shrinks by it; without its quotes and outer spaces. False when a
// quote is not closed.
bool TakeField(std::string_view& rest, char separator, std::string_view& field) {
  const size_t begin = rest.find_first_not_of(' ');
  size_t end = rest.find(separator);
  if (begin != std::string_view::npos && rest[begin] == '"') {
    const size_t closing = rest.find('"', begin + 1);
    if (closing == std::string_view::npos) return false;
    field = rest.substr(begin + 1, closing - begin - 1);
    end = rest.find(separator, closing);
  } else {
    field = Trim(rest.substr(0, end));
  }
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return true;
}

int64_t CountFields(std::string_view line, char separator) {
  int64_t count = 1;
  bool quoted = false;
  for (const char letter : line) {
    if (letter == '"') quoted = !quoted;
    if (letter == separator && !quoted) ++count;
  }
  return count;
}

enum class Parsed { kNumber, kNotANumber, kNotFinite };

Parsed ParseNumber(std::string_view text, float& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return Parsed::kNotFinite;
  if (error != std::errc() || end != text.data() + text.size()) return Parsed::kNotANumber;
  return std::isfinite(value) ? Parsed::kNumber : Parsed::kNotFinite;
}

class CsvReader final : public SampleReader {
 public:
  CsvReader(DataFile file, const CsvOptions& options)
      : lines_(std::move(file)), options_(options) {}

  Status Open() {
    const bool implied = options_.classes.count == 0 && options_.classes.implied;
    const bool checked = options_.classes.count > 0 && options_.classes.checked;
    int64_t largest_label = 0;
    bool first = true;
    bool more_rows = false;  // than are looked at
    const Status scanned =
        lines_.Scan([&](std::string_view line, int64_t number) -> Result<LineIndex::Scanned> {
          if (first) {
            first = false;
            LDNN_RETURN_IF_ERROR(ReadFirstLine(line));
            if (options_.header) return LineIndex::Scanned::kHeader;
          }
          if (options_.classes.first > 0 && lines_.samples() == options_.classes.first) {
            more_rows = true;
            return LineIndex::Scanned::kEnd;
          }
          if (!implied && !checked) return LineIndex::Scanned::kSample;
          LDNN_ASSIGN_OR_RETURN(const int64_t label, LabelOf(line, number));
          if (checked) LDNN_RETURN_IF_ERROR(CheckClass(label, options_.classes.count, number));
          largest_label = std::max(largest_label, label);
          return LineIndex::Scanned::kSample;
        });
    LDNN_RETURN_IF_ERROR(scanned);
    layout_.samples = lines_.samples();
    if (layout_.samples == 0) {
      return InvalidArgumentError(
          name() + " holds no samples; give a file with some" +
          (first ? "" : ", or set spec.dataset.csv.header: false if it has no header"));
    }
    layout_.feature_shape = {columns_ - 1};
    layout_.classes = options_.classes.count;
    if (implied) {
      LDNN_ASSIGN_OR_RETURN(
          layout_.classes,
          ImpliedClasses(largest_label, more_rows ? kMaxSamples : layout_.samples, name()));
    }
    layout_.stored_bytes = static_cast<int64_t>(lines_.stored_bytes());
    layout_.single_read = lines_.single_read();
    return OkStatus();
  }

  const SampleLayout& layout() const override { return layout_; }

  Status Read(std::span<const Range> ranges, SampleBlock& out) override {
    return lines_.Read(ranges, [&](int64_t, std::string_view line, int64_t number) {
      return ReadRow(line, number, out);
    });
  }

 private:
  const std::string& name() const { return lines_.name(); }

  Status ReadFirstLine(std::string_view line) {
    separator_ = FindSeparator(line);
    columns_ = CountFields(line, separator_);
    if (columns_ < 2 || columns_ - 1 > kMaxSampleElements) {
      return InvalidArgumentError(name() + ", line 1: has " + std::to_string(columns_) +
                                  " column; a sample needs a label and at least one feature, "
                                  "separated by commas");
    }
    if (options_.header) {
      std::string_view rest = line;
      std::string_view field;
      for (int64_t i = 0; i < columns_ && TakeField(rest, separator_, field); ++i) {
        names_.emplace_back(field);
      }
    }
    return FindLabelColumn();
  }

  Status FindLabelColumn() {
    label_column_ = columns_ - 1;
    if (options_.label_column.empty()) return OkStatus();
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == options_.label_column) {
        label_column_ = static_cast<int64_t>(i);
        return OkStatus();
      }
    }
    const auto index = ParseInteger(options_.label_column);
    if (index && *index >= 0 && *index < columns_) {
      label_column_ = *index;
      return OkStatus();
    }
    std::string message =
        "spec.dataset.csv.labelColumn: " + name() + " has no column '" + options_.label_column +
        "'; give a name of its header or an index from 0 to " + std::to_string(columns_ - 1);
    if (const auto nearest = NearestWord(options_.label_column, names_)) {
      message += " (did you mean " + *nearest + "?)";
    }
    return InvalidArgumentError(std::move(message));
  }

  std::string Place(int64_t line, int64_t column) const {
    std::string place =
        name() + ", line " + std::to_string(line) + ", column " + std::to_string(column + 1);
    if (column < static_cast<int64_t>(names_.size())) {
      place += " ('" + names_[static_cast<size_t>(column)] + "')";
    }
    return place;
  }

  // The class that a row's label is the number of.
  Result<int64_t> LabelOf(std::string_view line, int64_t line_number) const {
    std::string_view rest = line;
    std::string_view field;
    for (int64_t column = 0; column <= label_column_; ++column) {
      const bool missing = column > 0 && rest.data() == nullptr;
      if (missing || !TakeField(rest, separator_, field)) return Ragged(line, line_number);
    }
    float value = 0;
    const Parsed parsed = ParseNumber(field, value);
    if (parsed != Parsed::kNumber) {
      return BadNumber(parsed, field, line, line_number, label_column_);
    }
    return ClassNumber(static_cast<double>(value), Place(line_number, label_column_));
  }

  Status ReadRow(std::string_view line, int64_t line_number, SampleBlock& out) const {
    std::string_view rest = line;
    for (int64_t column = 0; column < columns_; ++column) {
      std::string_view field;
      const bool missing = column > 0 && rest.data() == nullptr;
      if (missing || !TakeField(rest, separator_, field)) {
        return missing ? Ragged(line, line_number)
                       : InvalidArgumentError(Place(line_number, column) +
                                              ": a quote is not closed; quoted line breaks are "
                                              "not read");
      }
      float value = 0;
      const Parsed parsed = ParseNumber(field, value);
      if (parsed != Parsed::kNumber) return BadNumber(parsed, field, line, line_number, column);
      if (column != label_column_) {
        out.values.push_back(value);
      } else if (layout_.classes == 0) {
        out.targets.push_back(value);
      } else {
        LDNN_RETURN_IF_ERROR(AddLabel(value, line_number, out));
      }
    }
    return rest.data() == nullptr ? OkStatus() : Ragged(line, line_number);
  }

  Status AddLabel(float value, int64_t line_number, SampleBlock& out) const {
    LDNN_ASSIGN_OR_RETURN(
        out.labels.emplace_back(),
        ClassNumber(static_cast<double>(value), Place(line_number, label_column_)));
    return CheckClass(out.labels.back(), layout_.classes, line_number);
  }

  Status CheckClass(int64_t label, int classes, int64_t line_number) const {
    if (label < classes) return OkStatus();
    return InvalidArgumentError(Place(line_number, label_column_) + ": the label " +
                                std::to_string(label) + " is outside the classes 0 to " +
                                std::to_string(classes - 1) +
                                "; correct the file or spec.dataset.classes");
  }

  Status Ragged(std::string_view line, int64_t line_number) const {
    return InvalidArgumentError(name() + ", line " + std::to_string(line_number) + ": has " +
                                std::to_string(CountFields(line, separator_)) +
                                " columns where the first line has " + std::to_string(columns_) +
                                "; correct the row");
  }

  Status BadNumber(Parsed parsed, std::string_view field, std::string_view line,
                   int64_t line_number, int64_t column) const {
    if (CountFields(line, separator_) != columns_) return Ragged(line, line_number);
    const std::string shown = ShownStart(field);
    if (parsed == Parsed::kNotFinite) {
      return InvalidArgumentError(Place(line_number, column) + ": '" + shown +
                                  "' is not a finite number; fill in a value or remove the row");
    }
    std::string message = Place(line_number, column) + ": ";
    message += field.empty() ? "the field is empty; fill in a value or remove the row"
                             : "'" + shown + "' is not a number; encode the column as numbers";
    if (line_number == 1) message += ", or set spec.dataset.csv.header: true if this is the header";
    return InvalidArgumentError(std::move(message));
  }

  LineIndex lines_;
  const CsvOptions options_;
  SampleLayout layout_;
  std::vector<std::string> names_;
  char separator_ = ',';
  int64_t columns_ = 0;
  int64_t label_column_ = 0;
};

}  // namespace

Result<std::unique_ptr<SampleReader>> OpenCsv(DataFile file, const CsvOptions& options) {
  auto reader = std::make_unique<CsvReader>(std::move(file), options);
  LDNN_RETURN_IF_ERROR(reader->Open());
  return std::unique_ptr<SampleReader>(std::move(reader));
}

}  // namespace lambdadnn
