// SPDX-License-Identifier: Apache-2.0
// One line per event on standard error, for people and for log collectors:
//
//   2026-01-31T12:00:00.123Z I server: slice started invocation=abc iteration=12
//
// Thread-safe: lines of different threads never mix. Values with spaces, quotes or control
// characters are quoted, so a line is always one line. Never log keys or credentials.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace lambdadnn {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogField {
  LogField(std::string_view field_name, std::string_view field_value)
      : name(field_name), value(field_value) {}
  LogField(std::string_view field_name, const char* field_value)
      : name(field_name), value(field_value) {}
  LogField(std::string_view field_name, const std::string& field_value)
      : name(field_name), value(field_value) {}
  LogField(std::string_view field_name, long long number)
      : name(field_name), value(std::to_string(number)) {}
  LogField(std::string_view field_name, long number)
      : name(field_name), value(std::to_string(number)) {}
  LogField(std::string_view field_name, int number)
      : name(field_name), value(std::to_string(number)) {}
  LogField(std::string_view field_name, double number);
  std::string name;
  std::string value;
};

// `component` is the part of the program that logs: "server", "host", "slice".
void Log(LogLevel level, std::string_view component, std::string_view message,
         std::initializer_list<LogField> fields = {});

inline void LogDebug(std::string_view component, std::string_view message,
                     std::initializer_list<LogField> fields = {}) {
  Log(LogLevel::kDebug, component, message, fields);
}
inline void LogInfo(std::string_view component, std::string_view message,
                    std::initializer_list<LogField> fields = {}) {
  Log(LogLevel::kInfo, component, message, fields);
}
inline void LogWarning(std::string_view component, std::string_view message,
                       std::initializer_list<LogField> fields = {}) {
  Log(LogLevel::kWarning, component, message, fields);
}
inline void LogError(std::string_view component, std::string_view message,
                     std::initializer_list<LogField> fields = {}) {
  Log(LogLevel::kError, component, message, fields);
}

// For collectors instead of people:
// {"ts":…,"level":"info","logger":"server","msg":…,"iteration":"12"} a line. kText at first; set it
// before other threads log.
enum class LogFormat { kText, kJson };
void SetLogFormat(LogFormat format);

// Lines below it are dropped; kInfo at first.
void SetLogLevel(LogLevel level);
// "debug", "info", "warning", "error"; false for anything else.
bool SetLogLevel(std::string_view name);

// "message name=value other=\"two words\"": what a line holds after its component.
std::string FormatLogMessage(std::string_view message, std::initializer_list<LogField> fields);

}  // namespace lambdadnn
