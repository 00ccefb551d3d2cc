// SPDX-License-Identifier: Apache-2.0
// Stands for libcupti.so.13 (CUDA's profiler), see no_cudart.c: every call says that it is not
// supported.
enum { kNotSupported = 27 };  // CUPTI_ERROR_NOT_SUPPORTED

#define NOT_SUPPORTED(name) \
  int name(void);           \
  int name(void) { return kNotSupported; }

NOT_SUPPORTED(cuptiActivityDisable)
NOT_SUPPORTED(cuptiActivityEnable)
NOT_SUPPORTED(cuptiActivityEnableCudaEventDeviceTimestamps)
NOT_SUPPORTED(cuptiActivityEnableDriverApi)
NOT_SUPPORTED(cuptiActivityEnableRuntimeApi)
NOT_SUPPORTED(cuptiActivityFlushAll)
NOT_SUPPORTED(cuptiActivityGetNextRecord)
NOT_SUPPORTED(cuptiActivityGetNumDroppedRecords)
NOT_SUPPORTED(cuptiActivityPopExternalCorrelationId)
NOT_SUPPORTED(cuptiActivityPushExternalCorrelationId)
NOT_SUPPORTED(cuptiActivityRegisterCallbacks)
NOT_SUPPORTED(cuptiActivityRegisterTimestampCallback)
NOT_SUPPORTED(cuptiActivitySetAttribute)
NOT_SUPPORTED(cuptiEnableCallback)
NOT_SUPPORTED(cuptiEnableDomain)
NOT_SUPPORTED(cuptiFinalize)
NOT_SUPPORTED(cuptiGetVersion)
NOT_SUPPORTED(cuptiSubscribe)
NOT_SUPPORTED(cuptiUnsubscribe)

int cuptiGetCallbackName(int domain, unsigned callback, const char** name);
int cuptiGetCallbackName(int domain, unsigned callback, const char** name) {
  (void)domain;
  (void)callback;
  *name = "";
  return kNotSupported;
}

int cuptiGetResultString(int result, const char** text);
int cuptiGetResultString(int result, const char** text) {
  (void)result;
  *text = "this program is built without CUDA";
  return 0;
}
