// SPDX-License-Identifier: Apache-2.0
#include "common/protocol/slice.h"

namespace lambdadnn {

std::string Role::Name() const {
  const char* const name = kind == RoleKind::kWorker   ? "worker-"
                           : kind == RoleKind::kServer ? "server-"
                                                       : "profile-";
  return name + std::to_string(rank);
}

std::vector<AssignedRole> RolesOf(const AggregationPlan& aggregation, const AssignedRole& role) {
  std::vector<AssignedRole> roles = {role};
  if (role.role.kind != RoleKind::kWorker) return roles;
  for (const ServerPosition& position : ServersOn(aggregation, role.role.rank)) {
    const Role server = {RoleKind::kServer, ServerRank(aggregation, position), position};
    roles.push_back({server, role.attempt});
  }
  return roles;
}

std::string MakeInvocationId(const SliceRequest& request) {
  return request.job.uid + ".r" + std::to_string(request.plan.revision) + ".i" +
         std::to_string(request.incarnation) + "." + request.role().Name() + ".f" +
         std::to_string(request.first_iteration) + ".a" +
         std::to_string(request.roles.front().attempt);
}

EvaluationPart& EvaluationPart::operator+=(const EvaluationPart& other) {
  loss_sum += other.loss_sum;
  correct += other.correct;
  samples += other.samples;
  const auto add = [](auto* sum, const auto& part) {
    if (part.has_value()) *sum = sum->value_or(0) + *part;
  };
  add(&correct_top5, other.correct_top5);
  add(&absolute_error_sum, other.absolute_error_sum);
  add(&weight_sum, other.weight_sum);
  return *this;
}

TestMetrics EvaluationPart::Metrics() const {
  TestMetrics metrics;
  if (samples <= 0) return metrics;
  const auto mean = [&](auto sum) {
    return static_cast<double>(sum) / static_cast<double>(samples);
  };
  metrics.loss = loss_sum / weight_sum.value_or(static_cast<double>(samples));
  if (!absolute_error_sum.has_value()) metrics.accuracy = mean(correct);
  if (correct_top5.has_value()) metrics.top5_accuracy = mean(*correct_top5);
  if (absolute_error_sum.has_value()) metrics.mean_absolute_error = mean(*absolute_error_sum);
  return metrics;
}

}  // namespace lambdadnn
