// SPDX-License-Identifier: Apache-2.0
// CPU time of this process that a request to an S3 store takes, signature and checksums included,
// with each of the two HTTP clients: the one over cpprestsdk and the one of the data path
// (common/http/http_transport.h). MinIO has its own process. In turns, the least of several rounds.
// Reprint: scripts/bench.sh http
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>

#include "common/base/runtime.h"
#include "common/objectstore/s3_object_store.h"
#include "tests/support/s3_test_server.h"

namespace lambdadnn {
namespace {

constexpr int kRounds = 4;

void MustBe(bool good, const Status& status) {
  if (good) return;
  std::fprintf(stderr, "error: %s\n", status.ToString().c_str());
  std::exit(1);
}

double CpuSecondsOf(int times, const std::function<void()>& request) {
  request();
  const Duration before = ProcessCpuTime();
  for (int i = 0; i < times; ++i) request();
  return ToSeconds(ProcessCpuTime() - before) / times;
}

struct Row {
  const char* name;
  size_t bytes;
  int times;
  std::function<void(ObjectStore& store, const Bytes& payload)> request;
};

int Run() {
  const auto server = S3TestServer::Start(
      {.name = "minio", .bucket = "bench", .certificate_file = "", .key_file = "", .ca_file = ""});
  if (!server.ok()) {
    std::printf("%s\n", server.status().message().c_str());
    return 1;
  }
  SystemClock clock;
  S3ObjectStore cpprest(NewHttpTransport({}).value(), clock, (*server)->store_options());
  S3ObjectStore data(NewDataTransport({}).value(), clock, (*server)->store_options());
  const auto put = [](ObjectStore& store, const Bytes& payload) {
    const Status status = store.Put("object", payload);
    MustBe(status.ok(), status);
  };
  const auto get = [](ObjectStore& store, const Bytes& payload) {
    const auto bytes = store.Get("object");
    MustBe(bytes.ok() && bytes->size() == payload.size(), bytes.status());
  };
  const auto miss = [](ObjectStore& store, const Bytes&) {
    const Status status = store.Get("none").status();
    MustBe(status.code() == StatusCode::kNotFound, status);
  };
  const std::array<Row, 7> rows = {Row{"PUT", 1'000, 200, put},   {"GET", 1'000, 400, get},
                                   {"GET in vain", 0, 400, miss}, {"PUT", 100'000, 200, put},
                                   {"GET", 100'000, 400, get},    {"PUT", 1'000'000, 40, put},
                                   {"GET", 1'000'000, 100, get}};
  std::printf("%-12s %9s | %9s %9s | ratio\n", "request", "bytes", "cpprest", "data");
  for (const Row& row : rows) {
    const Bytes payload(row.bytes);
    std::array<double, 2> least;
    least.fill(std::numeric_limits<double>::infinity());
    for (int round = 0; round < kRounds; ++round) {
      for (size_t which = 0; which < least.size(); ++which) {
        ObjectStore& store = which == 0 ? cpprest : data;
        least[which] =
            std::min(least[which], CpuSecondsOf(row.times, [&] { row.request(store, payload); }));
      }
    }
    std::printf("%-12s %9zu | %6.0f us %6.0f us | %.2f\n", row.name, row.bytes, least[0] * 1e6,
                least[1] * 1e6, least[1] / least[0]);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace lambdadnn

int main() { return lambdadnn::Run(); }
