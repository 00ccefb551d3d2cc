// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/parquet/parquet_columns.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

using Kind = ParquetField::Kind;

// pandas stores the names of rows so: they would be learnt from, or even be the label.
constexpr std::string_view kPandasIndex = "__index_level_0__";
constexpr const char* kUsualLabel = "label";

Kind KindOf(const ParquetColumn& column) {
  const bool number = column.values == ParquetValues::kNumbers;
  if (number && column.path.size() == 1 && column.repeated == 0) return Kind::kNumber;
  // A list's levels have names of their own: FIELD.list.element, or FIELD.array of older writers.
  if (number && column.path.size() <= 3 && column.repeated == 1) return Kind::kList;
  const bool bytes = column.values == ParquetValues::kBytes && column.repeated == 0;
  if (bytes && column.path.size() == 1) return Kind::kImage;
  if (bytes && column.path.size() == 2 && column.path[1] == "bytes") return Kind::kImage;
  return Kind::kOther;
}

std::string Quoted(const ParquetField& field) {
  return "'" + field.name + "' (" + field.type + ")";
}

Result<ParquetField> FindLabel(const std::vector<ParquetField>& fields, const std::string& wanted,
                               const std::string& file) {
  const auto named = [&](const std::string& name) {
    return std::find_if(fields.begin(), fields.end(),
                        [&](const ParquetField& field) { return field.name == name; });
  };
  if (wanted.empty()) {
    const auto usual = named(kUsualLabel);
    return usual == fields.end() ? fields.back() : *usual;
  }
  if (const auto found = named(wanted); found != fields.end()) return *found;
  const auto index = ParseInteger(wanted);
  if (index && *index >= 0 && *index < static_cast<int64_t>(fields.size())) {
    return fields[static_cast<size_t>(*index)];
  }
  std::vector<std::string> names;
  for (const ParquetField& field : fields) names.push_back(field.name);
  std::string message = "spec.dataset.parquet.labelColumn: " + file + " has no column '" + wanted +
                        "'; give one of " + Join(names, ", ");
  if (const auto nearest = NearestWord(wanted, names)) {
    message += " (did you mean " + *nearest + "?)";
  }
  return InvalidArgumentError(std::move(message));
}

}  // namespace

std::vector<ParquetField> FieldsOf(const std::vector<ParquetColumn>& columns) {
  std::vector<ParquetField> fields;
  for (size_t i = 0; i < columns.size(); ++i) {
    const ParquetColumn& column = columns[i];
    const ParquetField own = {column.path.front(), KindOf(column), static_cast<int>(i), column.type,
                              column.byte};
    if (fields.empty() || fields.back().name != own.name) {
      fields.push_back(own);
      continue;
    }
    // A struct: an image where that is among its fields, else nothing that a sample is made of.
    if (fields.back().kind == Kind::kImage && column.path.size() == 2) continue;
    const bool image = own.kind == Kind::kImage && column.path.size() == 2;
    fields.back() = own;
    if (!image) {
      fields.back().kind = Kind::kOther;
      fields.back().type = "a struct";
    }
  }
  return fields;
}

Result<ParquetSelection> SelectColumns(const std::vector<ParquetColumn>& columns,
                                       const std::string& label_column, const std::string& file) {
  const std::vector<ParquetField> fields = FieldsOf(columns);
  if (fields.size() < 2) {
    return InvalidArgumentError(file + " has " + std::to_string(fields.size()) +
                                " columns; a sample needs a label and at least one feature");
  }
  ParquetSelection selection;
  LDNN_ASSIGN_OR_RETURN(selection.label, FindLabel(fields, label_column, file));
  if (selection.label.kind != Kind::kNumber && selection.label.kind != Kind::kList) {
    return InvalidArgumentError(file + ": the column " + Quoted(selection.label) +
                                " holds no labels, which are numbers; name another in "
                                "spec.dataset.parquet.labelColumn");
  }
  std::vector<ParquetField> images;
  for (const ParquetField& field : fields) {
    if (field.name == selection.label.name) continue;
    if (field.kind == Kind::kImage) images.push_back(field);
    selection.features.push_back(field);
  }
  if (images.size() > 1) {
    return InvalidArgumentError(file + " has images in the columns " + Quoted(images[0]) + " and " +
                                Quoted(images[1]) + "; write it with one of them");
  }
  if (!images.empty()) {
    selection.features = std::move(images);
    selection.images = true;
    return selection;
  }
  for (const ParquetField& field : selection.features) {
    if (field.name == kPandasIndex) {
      return InvalidArgumentError(file + " has pandas' names of rows as a column, " +
                                  Quoted(field) + "; write it with index=False");
    }
    if (field.kind == Kind::kOther) {
      return InvalidArgumentError(file + ": the column " + Quoted(field) +
                                  " holds neither numbers, lists of numbers nor images; encode it "
                                  "as numbers, or write the file without it");
    }
  }
  return selection;
}

}  // namespace lambdadnn
