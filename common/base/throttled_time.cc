// SPDX-License-Identifier: Apache-2.0
#include "common/base/throttled_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/text.h"

namespace lambdadnn {
namespace {

constexpr const char* kMount = "/sys/fs/cgroup";

// The controller of CPU quotas is one of a line's list, as "cpu,cpuacct".
bool HasCpuController(const std::string& controllers) {
  for (const std::string& name : Split(controllers, ',')) {
    if (name == "cpu") return true;
  }
  return false;
}

// Where this process' group may have its cpu.stat, by /proc/self/cgroup: at its path below the
// mount, or, where a container sees nothing but its own group, at the mount itself.
std::vector<std::string> Candidates(const std::string& groups) {
  std::vector<std::string> files;
  for (const std::string& line : Split(groups, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !HasCpuController(controllers)) continue;
    const std::string mount = kMount + (controllers.empty() ? "" : "/" + controllers);
    files.push_back(mount + line.substr(second + 1) + "/cpu.stat");
    files.push_back(mount + "/cpu.stat");
  }
  return files;
}

std::optional<double> ReadSeconds(int descriptor) {
  constexpr std::string_view kMicroseconds = "throttled_usec ";
  constexpr std::string_view kNanoseconds = "throttled_time ";
  std::array<char, 1024> buffer;
  const ssize_t size = pread(descriptor, buffer.data(), buffer.size(), 0);
  if (size <= 0) return std::nullopt;
  const std::string_view text(buffer.data(), static_cast<size_t>(size));
  const auto value = [&](std::string_view name) -> std::optional<double> {
    size_t at = text.find(name);
    if (at == std::string_view::npos || (at > 0 && text[at - 1] != '\n')) return std::nullopt;
    double sum = 0;
    for (at += name.size(); at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
      sum = 10 * sum + (text[at] - '0');
    }
    return sum;
  };
  if (const auto microseconds = value(kMicroseconds)) return *microseconds * 1e-6;
  if (const auto nanoseconds = value(kNanoseconds)) return *nanoseconds * 1e-9;
  return std::nullopt;
}

}  // namespace

std::unique_ptr<ThrottledTime> ThrottledTime::Open(const std::string& root) {
  const auto groups = ReadFile(root + "/proc/self/cgroup");
  if (!groups.ok()) return nullptr;
  for (const std::string& file : Candidates(*groups)) {
    const int descriptor = open((root + file).c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) continue;
    if (ReadSeconds(descriptor).has_value()) {
      return std::unique_ptr<ThrottledTime>(new ThrottledTime(descriptor));
    }
    close(descriptor);
  }
  return nullptr;
}

ThrottledTime::~ThrottledTime() { close(descriptor_); }

double ThrottledTime::Seconds() const { return ReadSeconds(descriptor_).value_or(0); }

}  // namespace lambdadnn
