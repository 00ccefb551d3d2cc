// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/json/dump_json.h"

namespace lambdadnn {
namespace {

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %L %v";
constexpr const char* kJsonPattern = R"({"ts":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v)";

bool as_json = false;

// Not spdlog's registry: its default logger and periodic flusher are not wanted here.
spdlog::logger& Logger() {
  static spdlog::logger& logger = []() -> spdlog::logger& {
    // Leaked, so that threads which outlive main() can still log.
    auto* made = new spdlog::logger("lambdadnn", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_formatter(
        std::make_unique<spdlog::pattern_formatter>(kTextPattern, spdlog::pattern_time_type::utc));
    made->set_level(spdlog::level::info);
    return *made;
  }();
  return logger;
}

void AppendJsonText(std::string_view text, std::string* out) {
  *out += DumpJson(nlohmann::json(text));
}

// What follows the time and the level.
std::string JsonMembers(std::string_view component, std::string_view message,
                        std::initializer_list<LogField> fields) {
  std::string line = "\"logger\":";
  AppendJsonText(component, &line);
  line += ",\"msg\":";
  AppendJsonText(message, &line);
  for (const LogField& field : fields) {
    line += ',';
    AppendJsonText(field.name, &line);
    line += ':';
    AppendJsonText(field.value, &line);
  }
  return line + "}";
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void AppendEscaped(std::string_view text, std::string* out) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out->push_back(c);
    } else {
      *out += "\\x";
      out->push_back(kHexDigits[byte >> 4]);
      out->push_back(kHexDigits[byte & 15]);
    }
  }
}

void AppendValue(std::string_view value, std::string* out) {
  const bool plain = !value.empty() && value.find_first_of(" \"=\\") == std::string_view::npos;
  if (plain) return AppendEscaped(value, out);
  std::string escaped;
  AppendEscaped(value, &escaped);
  out->push_back('"');
  for (const char c : escaped) {
    if (c == '"') out->push_back('\\');
    out->push_back(c);
  }
  out->push_back('"');
}

}  // namespace

LogField::LogField(std::string_view field_name, double number)
    : name(field_name), value(FormatDouble(number)) {}

std::string FormatLogMessage(std::string_view message, std::initializer_list<LogField> fields) {
  std::string line;
  AppendEscaped(message, &line);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.name;
    line += '=';
    AppendValue(field.value, &line);
  }
  return line;
}

void Log(LogLevel level, std::string_view component, std::string_view message,
         std::initializer_list<LogField> fields) {
  spdlog::logger& logger = Logger();
  const spdlog::level::level_enum spdlog_level = ToSpdlog(level);
  if (!logger.should_log(spdlog_level)) return;
  std::string line;
  if (as_json) {
    line = JsonMembers(component, message, fields);
  } else {
    line += component;
    line += ": ";
    line += FormatLogMessage(message, fields);
  }
  logger.log(spdlog_level, spdlog::string_view_t(line.data(), line.size()));
}

void SetLogFormat(LogFormat format) {
  as_json = format == LogFormat::kJson;
  Logger().set_formatter(std::make_unique<spdlog::pattern_formatter>(
      as_json ? kJsonPattern : kTextPattern, spdlog::pattern_time_type::utc));
}

void SetLogLevel(LogLevel level) { Logger().set_level(ToSpdlog(level)); }

bool SetLogLevel(std::string_view name) {
  if (name == "debug")
    SetLogLevel(LogLevel::kDebug);
  else if (name == "info")
    SetLogLevel(LogLevel::kInfo);
  else if (name == "warning")
    SetLogLevel(LogLevel::kWarning);
  else if (name == "error")
    SetLogLevel(LogLevel::kError);
  else
    return false;
  return true;
}

}  // namespace lambdadnn
