// SPDX-License-Identifier: Apache-2.0
// Asks functions for their numerics fingerprint (`GET /readyz`), any number at a time, and keeps
// the answers until they are taken. Private to the backends: included by .cc files only.
//
// Thread-safe. The calls run on the io_context's task, which must have ended before this is
// destroyed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/endpoint.h"
#include "common/base/runtime.h"
#include "operator/backends/http_call.h"
#include "operator/backends/slice_client.h"

namespace lambdadnn {

class FingerprintQueries {
 public:
  // `told` is called when a function of the job has answered; runs on the task.
  FingerprintQueries(const HttpCallTask& task, Clock& clock, double connect_seconds,
                     std::function<void(const JobIdentity&)> told);
  FingerprintQueries(const FingerprintQueries&) = delete;
  FingerprintQueries& operator=(const FingerprintQueries&) = delete;

  // As SliceClient::AskFingerprint and TakeFingerprints.
  void Ask(const JobIdentity& job, const std::string& instance_uid, const Endpoint& endpoint,
           const FunctionAccess& access);
  std::vector<FingerprintAnswer> Take(const std::string& job_uid);
  // Ends all calls.
  void Close();

 private:
  struct Question {
    JobIdentity job;
    Instant asked{};
    uint64_t attempt = 0;            // calls of an older attempt change nothing
    std::shared_ptr<HttpCall> call;  // null: it has answered, or failed with `error`
    int http_status = 0;
    std::string body;
    NumericsFingerprint answer;
    Status error;
  };

  // Runs `change` on the question if `attempt` still is the newest one; true = it was answered.
  void With(const std::string& instance_uid, uint64_t attempt,
            const std::function<bool(Question&)>& change);
  bool OnBody(Question& question, std::string_view bytes);
  void OnEnd(const std::string& instance_uid, uint64_t attempt, const Status& status);
  void CloseCall(std::shared_ptr<HttpCall> call);

  const HttpCallTask task_;
  Clock& clock_;
  const double connect_seconds_;
  const std::function<void(const JobIdentity&)> told_;
  std::mutex mutex_;
  std::map<std::string, Question> questions_;  // by uid of the instance; under mutex_
  uint64_t attempts_ = 0;                      // under mutex_
};

}  // namespace lambdadnn
