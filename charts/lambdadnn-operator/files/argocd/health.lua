-- SPDX-License-Identifier: Apache-2.0
-- Health of a ServerlessTrainingJob for Argo CD (docs/operations.md, GitOps): as of a Job of batch/v1
-- it is Progressing until it is complete (Healthy), failed (Degraded) or suspended (Suspended).
local status = obj.status or {}
if obj.metadata.generation ~= nil and status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "the operator has not seen this version yet"}
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  if condition.status == "True" then
    conditions[condition.type] = condition
  end
end
for _, row in ipairs({{"Complete", "Healthy"}, {"Failed", "Degraded"}, {"Suspended", "Suspended"}}) do
  local condition = conditions[row[1]]
  if condition ~= nil then
    return {status = row[2], message = condition.message}
  end
end

local message = status.phase or "Pending"
if (status.summary or {}).epoch ~= nil then
  message = message .. ", epoch " .. status.summary.epoch
end
if conditions.Degraded ~= nil then
  message = message .. "; " .. conditions.Degraded.message
end
return {status = "Progressing", message = message}
