// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/fingerprint_queries.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace lambdadnn {
namespace {

// Without a byte, while reading.
constexpr double kSilenceSeconds = 3;
// An answer is a short line; after this time the call is repeated.
constexpr Duration kLongestCall = std::chrono::seconds(10);
constexpr size_t kMaxAnswerBytes = 4096;
// The answer for a job that has gone meanwhile is never taken.
constexpr Duration kAnswerKept = std::chrono::seconds(60);

}  // namespace

FingerprintQueries::FingerprintQueries(const HttpCallTask& task, Clock& clock,
                                       double connect_seconds,
                                       std::function<void(const JobIdentity&)> told)
    : task_(task), clock_(clock), connect_seconds_(connect_seconds), told_(std::move(told)) {}

void FingerprintQueries::CloseCall(std::shared_ptr<HttpCall> call) {
  if (call != nullptr) boost::asio::post(task_.io, [call = std::move(call)] { call->Close(); });
}

void FingerprintQueries::Ask(const JobIdentity& job, const std::string& instance_uid,
                             const Endpoint& endpoint, const FunctionAccess& access) {
  const Instant now = clock_.Now();
  std::lock_guard lock(mutex_);
  std::erase_if(questions_, [&](const auto& named) {
    return named.second.call == nullptr && now - named.second.asked >= kAnswerKept;
  });
  Question& question = questions_[instance_uid];
  const bool answers = question.attempt != 0 && question.error.ok();
  if (answers && now - question.asked < kLongestCall) return;
  CloseCall(std::move(question.call));
  question = Question{};
  question.job = job;
  question.asked = now;
  const uint64_t attempt = question.attempt = ++attempts_;
  HttpCall::Callbacks callbacks;
  callbacks.on_status = [this, instance_uid, attempt](int status) {
    With(instance_uid, attempt, [status](Question& target) {
      target.http_status = status;
      return false;
    });
  };
  callbacks.on_body = [this, instance_uid, attempt](std::string_view bytes) {
    With(instance_uid, attempt, [&](Question& target) { return OnBody(target, bytes); });
    return Duration{};  // it is short, or ended
  };
  callbacks.on_end = [this, instance_uid, attempt](const Status& status) {
    OnEnd(instance_uid, attempt, status);
  };
  question.call = std::make_shared<HttpCall>(
      task_, HttpCallRequest{endpoint, "GET", "/readyz", "", "", access.certificate_digest},
      HttpCallLimits{connect_seconds_, kSilenceSeconds}, std::move(callbacks));
  boost::asio::post(task_.io, [call = question.call] { call->Begin(); });
}

void FingerprintQueries::With(const std::string& instance_uid, uint64_t attempt,
                              const std::function<bool(Question&)>& change) {
  JobIdentity job;
  {
    std::lock_guard lock(mutex_);
    const auto found = questions_.find(instance_uid);
    if (found == questions_.end() || found->second.attempt != attempt) return;
    if (found->second.call == nullptr || !change(found->second)) return;
    job = found->second.job;
    // Platforms may send every byte and never end the response.
    CloseCall(std::exchange(found->second.call, nullptr));
  }
  told_(job);
}

bool FingerprintQueries::OnBody(Question& question, std::string_view bytes) {
  question.body.append(bytes.substr(0, kMaxAnswerBytes - question.body.size()));
  const size_t end = question.body.find('\n');
  if (question.http_status != 200 || end == std::string::npos) return false;
  question.answer = DecodeFingerprint(std::string_view(question.body).substr(0, end));
  return true;
}

void FingerprintQueries::OnEnd(const std::string& instance_uid, uint64_t attempt,
                               const Status& status) {
  With(instance_uid, attempt, [&](Question& target) {
    if (!status.ok() || target.http_status != 200) return false;
    target.answer = DecodeFingerprint(target.body);
    return true;
  });
  std::lock_guard lock(mutex_);
  const auto found = questions_.find(instance_uid);
  if (found == questions_.end() || found->second.attempt != attempt) return;
  Question& question = found->second;
  if (question.call == nullptr) return;
  // Not there, draining, or cut: it is to be asked again.
  question.call.reset();
  question.error = status.ok() ? UnavailableError(question.job.name + "'s function answers HTTP " +
                                                  std::to_string(question.http_status))
                               : status;
}

std::vector<FingerprintAnswer> FingerprintQueries::Take(const std::string& job_uid) {
  std::lock_guard lock(mutex_);
  std::vector<FingerprintAnswer> answers;
  for (auto at = questions_.begin(); at != questions_.end();) {
    if (at->second.call != nullptr || at->second.job.uid != job_uid) {
      ++at;
      continue;
    }
    answers.push_back({at->first, std::move(at->second.answer), std::move(at->second.error)});
    at = questions_.erase(at);
  }
  return answers;
}

void FingerprintQueries::Close() {
  std::lock_guard lock(mutex_);
  for (auto& [uid, question] : questions_) CloseCall(std::move(question.call));
  questions_.clear();
}

}  // namespace lambdadnn
