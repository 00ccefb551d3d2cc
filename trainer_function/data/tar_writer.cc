// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/tar_writer.h"

#include <cstdio>
#include <utility>

#include "trainer_function/data/tar_reader.h"

namespace lambdadnn {
namespace {

constexpr size_t kNameBytes = 100;
constexpr size_t kPrefixBytes = 155;

std::string Octal(size_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*zo", digits, value);
  return text;
}

}  // namespace

Status TarWriter::Add(std::string_view name, std::string_view contents) {
  std::string_view prefix;
  std::string_view rest = name;
  if (name.size() > kNameBytes) {
    const size_t slash = name.find('/', name.size() - kNameBytes - 1);
    if (slash > kPrefixBytes) {
      return InvalidArgumentError(std::string(name) +
                                  ": the name is too long for a tar archive; shorten it");
    }
    prefix = name.substr(0, slash);
    rest = name.substr(slash + 1);
  }
  std::string header(kTarBlock, '\0');
  const auto put = [&](size_t at, std::string_view text) { header.replace(at, text.size(), text); };
  put(0, rest);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, Octal(contents.size(), 11));
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, std::string_view("ustar\00000", 8));
  put(345, prefix);
  size_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  put(148, Octal(sum, 6));
  header[154] = '\0';
  archive_ += header;
  archive_ += contents;
  archive_.resize((archive_.size() + kTarBlock - 1) / kTarBlock * kTarBlock);
  return OkStatus();
}

std::string TarWriter::Finish() {
  archive_.resize(archive_.size() + 2 * kTarBlock);
  return std::exchange(archive_, {});
}

}  // namespace lambdadnn
