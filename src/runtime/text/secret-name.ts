/** Names of options that hold credentials, or from which they follow. */
export const SECRET_NAME = /key|secret|token|password|passwd|credential|signature|sas/i;
